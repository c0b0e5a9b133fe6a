// D-Bus messages as values, and the errors of a call.

/// A call, its reply, or a signal.
public struct DBusMessage: Sendable {
  public enum Kind: Sendable, Equatable {
    case call
    case reply
    /// The error's name, such as `org.bluez.Error.InProgress`.
    case error(String)
    case signal
  }

  public var kind: Kind
  public var destination: String?
  public var sender: String?
  public var path: String?
  public var interface: String?
  public var member: String?
  public var body: [DBusValue] = []
  /// The serial of the message, which the connection sets.
  public var serial: UInt32 = 0
  public var replySerial: UInt32 = 0
  /// Whether the bus starts a service that is not running (D-Bus activation).
  public var startsService = false
  /// Whether a reply to this call is expected.
  public var expectsReply = true

  /// A call of `interface.member` on an object.
  public static func call(
    _ destination: String, _ path: String, _ interface: String, _ member: String, _ body: [DBusValue] = []
  ) -> DBusMessage {
    DBusMessage(kind: .call, destination: destination, path: path, interface: interface, member: member, body: body)
  }

  /// A broadcast signal.
  public static func signal(_ path: String, _ interface: String, _ member: String, _ body: [DBusValue]) -> DBusMessage {
    DBusMessage(kind: .signal, path: path, interface: interface, member: member, body: body)
  }

  /// Returns the method return for this call.
  public func reply(_ body: [DBusValue] = []) -> DBusMessage {
    DBusMessage(kind: .reply, destination: sender, body: body, replySerial: serial)
  }

  /// Returns the error reply to this call.
  public func failure(_ name: String, _ text: String) -> DBusMessage {
    DBusMessage(kind: .error(name), destination: sender, body: [.string(text)], replySerial: serial)
  }
}

/// Why a call failed.
public enum DBusError: Error, Sendable, Equatable {
  /// There is no connection to the bus.
  case disconnected(String)
  /// No reply arrived in time.
  case timeout
  /// The peer replied with an error: its name and message.
  case refused(name: String, text: String)
  /// The message is invalid: a name, path or string in it is not allowed.
  case unsendable(String)
  /// The reply does not have the expected type.
  case malformed(String)
}
