// A message of D-Bus as a value, and what can go wrong with one.

/// A call, its reply, or a signal.
public struct BusMessage: Sendable {
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
  public var body: [BusValue] = []
  /// Set by the connection.
  public var serial: UInt32 = 0
  public var replySerial: UInt32 = 0
  /// A service that is not running is started by the bus for this call.
  public var startsService = false

  /// A call of `interface.member` on an object.
  public static func call(
    _ destination: String, _ path: String, _ interface: String, _ member: String, _ body: [BusValue] = []
  ) -> BusMessage {
    BusMessage(kind: .call, destination: destination, path: path, interface: interface, member: member, body: body)
  }

  /// A signal to everybody who listens.
  public static func signal(_ path: String, _ interface: String, _ member: String, _ body: [BusValue]) -> BusMessage {
    BusMessage(kind: .signal, path: path, interface: interface, member: member, body: body)
  }

  /// The answer to this call.
  public func reply(_ body: [BusValue] = []) -> BusMessage {
    BusMessage(kind: .reply, destination: sender, body: body, replySerial: serial)
  }

  /// The refusal of this call.
  public func failure(_ name: String, _ text: String) -> BusMessage {
    BusMessage(kind: .error(name), destination: sender, body: [.string(text)], replySerial: serial)
  }
}

/// Why a call has no answer.
public enum BusError: Error, Sendable, Equatable {
  /// The bus is gone, or was never there.
  case disconnected(String)
  /// Nobody answered in time.
  case timeout
  /// The other side refused: the error's name and its text.
  case refused(name: String, text: String)
  /// The message cannot be sent: a name, path or text in it is not allowed.
  case unsendable(String)
  /// The answer is not of the type that was agreed.
  case malformed(String)
}
