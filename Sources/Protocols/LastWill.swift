// A device's last will, as in MQTT: messages that another process sends over a link if this process dies or freezes. The machine prepares
// the messages in advance, because the process that sends them does not implement the protocol.

/// The last-will messages of a link. Each message is one write(2).
public struct LastWill: Sendable, Equatable {
  /// One message, and the pause before it.
  public struct Message: Sendable, Equatable {
    public var bytes: [UInt8]
    public var pause: Nanoseconds

    /// A message that is sent `pause` nanoseconds after the previous one.
    public init(_ bytes: [UInt8], after pause: Nanoseconds = 0) {
      self.bytes = bytes
      self.pause = pause
    }
  }

  /// Sent when the daemon has died: stop the vehicle, and end the session.
  public var dead: [Message]
  /// Sent when the daemon has been frozen for longer than the lease's deadline while the motion lease is held: stop the vehicle.
  public var frozen: [Message]

  /// Creates last-will messages: at most 16 in each list, of at most 1024 bytes each; the rest is dropped.
  public init(dead: [Message], frozen: [Message]) {
    self.dead = LastWill.bounded(dead)
    self.frozen = LastWill.bounded(frozen)
  }

  private static func bounded(_ messages: [Message]) -> [Message] { messages.prefix(16).filter { $0.bytes.count <= 1024 } }
}
