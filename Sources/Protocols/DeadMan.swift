// The dead man's handle of a vehicle that is driven over a link: whoever drives squeezes it with every set-point, and when
// the squeezing stops, so does the vehicle. Pure; the machine that moves something owns one and looks at `expires`.

/// Whether somebody holds the motion lease, and until when without another set-point.
public struct DeadMan: Sendable, Equatable {
  private var deadline: Nanoseconds = 0
  /// When the lease is lost unless a set-point comes; nil: nobody holds it.
  public private(set) var expires: Instant?

  /// Nobody holds it.
  public init() {}

  /// Whether somebody holds the lease.
  public var isHeld: Bool { expires != nil }

  /// The lease begins: the first set-point is awaited.
  public mutating func begin(deadline: Nanoseconds, at now: Instant) {
    self.deadline = deadline
    expires = now + deadline
  }

  /// A set-point came.
  public mutating func squeeze(at now: Instant) {
    if isHeld { expires = now + deadline }
  }

  /// The lease is at its end.
  public mutating func release() { expires = nil }

  /// Why the lease is lost at this moment, or nil while it holds.
  public func lapse(at now: Instant) -> String? {
    guard let expires, now >= expires else { return nil }
    return "no set-point came for \(deadline / .millisecond) ms"
  }
}
