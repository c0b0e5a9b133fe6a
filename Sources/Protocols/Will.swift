// A device's last will, as MQTT knows it: what another process says over a link when this one cannot any more. A machine
// writes it while all is well; who executes it knows nothing of the protocol.

/// What is to be said over a link in place of a daemon that is dead or frozen. Bytes are one write(2) each.
public struct Will: Sendable, Equatable {
  /// One message, and how long after the one before it.
  public struct Message: Sendable, Equatable {
    public var bytes: [UInt8]
    public var pause: Nanoseconds

    /// A message that follows the one before it at once, or after a pause.
    public init(_ bytes: [UInt8], after pause: Nanoseconds = 0) {
      self.bytes = bytes
      self.pause = pause
    }
  }

  /// When the daemon is gone: the stop, and the end of the session.
  public var dead: [Message]
  /// When the daemon does nothing for as long as set-points may stay away, while somebody holds the motion lease: the stop.
  public var frozen: [Message]

  /// At most 16 messages of 1024 bytes in each; what is beyond is left out.
  public init(dead: [Message], frozen: [Message]) {
    self.dead = Will.bounded(dead)
    self.frozen = Will.bounded(frozen)
  }

  private static func bounded(_ messages: [Message]) -> [Message] { messages.prefix(16).filter { $0.bytes.count <= 1024 } }
}
