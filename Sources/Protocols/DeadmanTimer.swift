// The deadman timer of a vehicle that is driven over a link: every setpoint refreshes the timer, and the vehicle stops when the timer
// expires. The timer itself does no I/O; the machine that owns it checks `expires`.

/// The state of the motion lease: whether it is held, and when it expires without another setpoint.
public struct DeadmanTimer: Sendable, Equatable {
  private var deadline: Nanoseconds = 0
  /// The time at which the lease is lost unless a setpoint arrives; nil if the lease is not held.
  public private(set) var expires: Instant?

  /// A lease that is not held.
  public init() {}

  /// Whether the lease is held.
  public var isLeaseHeld: Bool { expires != nil }

  /// Starts the lease; the first setpoint is due within `deadline` (nanoseconds).
  public mutating func begin(deadline: Nanoseconds, at now: Instant) {
    self.deadline = deadline
    expires = now + deadline
  }

  /// Restarts the deadline after a setpoint. Has no effect unless the lease is held.
  public mutating func refresh(at now: Instant) {
    if isLeaseHeld { expires = now + deadline }
  }

  /// Ends the lease.
  public mutating func release() { expires = nil }

  /// The reason why the lease has expired, or nil if it has not.
  public func expiryReason(at now: Instant) -> String? {
    guard let expires, now >= expires else { return nil }
    return "no setpoint for \(deadline / .millisecond) ms"
  }
}
