// The state of a CAN interface, derived from its error frames. Source: linux/can/error.h.

package struct CANInterfaceState: Equatable, Sendable {
  /// The fault confinement of ISO 11898-1. `warning`: an error counter has reached 96; `passive`: 128.
  package enum Level: String, Sendable {
    case active = "error-active"
    case warning = "error-warning"
    case passive = "error-passive"
    case busOff = "bus-off"
  }

  package private(set) var level = Level.active
  /// How often the controller of the interface has lost received frames.
  package private(set) var overruns = 0

  package init() {}

  /// Handles an error frame; has no effect for other frames.
  package mutating func update(_ frame: CANFrame) {
    let classes = frame.errorClasses
    if classes.contains(.controller), frame.count > 1 {
      let flags = frame[1]
      if flags & 0x01 != 0 { overruns += 1 }
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
