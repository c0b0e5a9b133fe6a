// The state of a CAN interface, derived from its error frames. Source: linux/can/error.h. Many drivers do not report that a controller is
// error-active again, so a state without errors for some time, although frames are received, has ended.

package struct CANInterfaceState: Equatable, Sendable {
  /// The fault confinement of ISO 11898-1. `warning`: an error counter has reached 96; `passive`: 128.
  package enum Level: String, Sendable {
    case active = "error-active"
    case warning = "error-warning"
    case passive = "error-passive"
    case busOff = "bus-off"
  }

  /// The time without errors after which the controller is error-active again, and after which lost frames no longer matter.
  private static let (errorMemory, lossMemory): (Nanoseconds, Nanoseconds) = (10 * .second, 60 * .second)

  package private(set) var level = Level.active
  /// How often the controller of the interface has lost received frames.
  package private(set) var overruns = 0
  /// The number of frames that the kernel has dropped because they were read too late.
  package private(set) var drops: Int64 = 0
  /// Whether the controller, or the kernel, has lost frames recently.
  package private(set) var (losesFrames, dropsFrames) = (false, false)
  private var (lastError, lastOverrun, lastDrop): (Instant, Instant, Instant) = (.min, .min, .min)

  package init() {}

  /// Handles frames that were received without errors, and the number of frames that the kernel has dropped since the link came up.
  package mutating func received(drops: Int64, at now: Instant) {
    if drops != self.drops { (self.drops, dropsFrames, lastDrop) = (drops, true, now) }
    if level != .busOff, lastError < now &- Self.errorMemory { level = .active }
    if lastOverrun < now &- Self.lossMemory { losesFrames = false }
    if lastDrop < now &- Self.lossMemory { dropsFrames = false }
  }

  /// Handles an error frame; has no effect for other frames.
  package mutating func update(_ frame: CANFrame, at now: Instant) {
    let classes = frame.errorClasses
    // Losing the arbitration is no error.
    guard frame.kind == .error, classes != .lostArbitration else { return }
    lastError = now
    if classes.contains(.controller), frame.count > 1 {
      let flags = frame[1]
      if flags & 0x01 != 0 { (overruns, losesFrames, lastOverrun) = (overruns + 1, true, now) }
      if flags & 0x30 != 0 {
        level = .passive
      } else if flags & 0x0C != 0 {
        level = .warning
      } else if flags & 0x40 != 0 {
        level = .active
      }
    }
    // Without an acknowledgement, a controller becomes error-passive and stays so.
    if classes.contains(.noAcknowledgement) { level = .passive }
    if classes.contains(.restarted) { level = .active }
    if classes.contains(.busOff) { level = .busOff }
  }
}
