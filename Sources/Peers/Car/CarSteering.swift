// The steering of the simulated car. The program creates a new steering object at every mode change. Each object has its own stopped
// state. Exceptions occur at the same step as in the original, so a Stop may be recorded although the wheels keep turning.
// Source: Steering.py and Lights.py of task123/AutoTT.

import Protocols

/// A Python exception in a handler. The remaining received bytes are discarded.
struct PythonException: Error, Equatable {
  var name: String

  static let attribute = PythonException(name: "AttributeError")
  static let value = PythonException(name: "ValueError")
  static let index = PythonException(name: "IndexError")
}

/// The state of the car that an observer can see.
struct CarState: Sendable, Equatable {
  var wheels = CarWheels.still
  var lights = CarLights()
  var isCameraOn = false
  var isStreaming = false
}

/// The side of an indicator, and of the screen half that controls it.
enum IndicatorSide: Sendable { case left, right }

/// The lights, whose state survives a mode change.
struct CarLights: Sendable, Equatable {
  var areOn = false
  var isHighBeam = false
  /// The blinking indicators.
  var indicators: Set<IndicatorSide> = []

  /// `off`, or the lights that are on: `low` or `high`, then `left` and `right` for blinking indicators.
  var text: String {
    let words = [
      areOn ? isHighBeam ? "high" : "low" : nil, indicators.contains(.left) ? "left" : nil, indicators.contains(.right) ? "right" : nil,
    ].compactMap(\.self)
    return words.isEmpty ? "off" : words.joined(separator: " ")
  }
}

/// Steering by tilt; in some modes the buttons are indicators.
struct TiltSteering: Sendable, Equatable {
  private(set) var isStopped = true
  /// Whether the buttons control indicators. If not, the original has no attribute for them, and every button raises an exception.
  let hasIndicators: Bool
  /// The indicator that is switched on.
  private var indicator: IndicatorSide?
  private var isHighBeam = false

  init(hasIndicators: Bool) { self.hasIndicators = hasIndicators }

  mutating func handle(_ frame: ReceivedFrame, _ state: inout CarState) throws(PythonException) {
    switch frame.name {
    case "Gyro" where !isStopped:
      let parts = frame.body.split(separator: 0x3B, maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, let roll = PythonNumber.float(parts[0]), let pitch = PythonNumber.float(parts[1]),
        PythonNumber.float(parts[2]) != nil
      else { throw .value }
      state.wheels = CarWheels(roll: roll, pitch: pitch)
    case "Stop": (isStopped, state.wheels) = (true, .still)
    case "Continue": isStopped = false
    case _ where !hasIndicators: throw .attribute
    case "LeftButtonTouchDown": press(.left, &state.lights)
    case "RightButtonTouchDown": press(.right, &state.lights)
    case "LeftButtonTouchUp" where indicator == .left, "RightButtonTouchUp" where indicator == .right: turnOffIndicator(&state.lights)
    default: break
    }
  }

  /// Pressing the second side while the first one is held toggles the high beam.
  private mutating func press(_ side: IndicatorSide, _ lights: inout CarLights) {
    switch indicator {
    case nil:
      indicator = side
      lights.indicators.insert(side)
    case side: turnOffIndicator(&lights)
    default:
      isHighBeam.toggle()
      lights.isHighBeam = isHighBeam && lights.areOn
      turnOffIndicator(&lights)
    }
  }

  private mutating func turnOffIndicator(_ lights: inout CarLights) {
    if let indicator { lights.indicators.remove(indicator) }
    indicator = nil
  }
}

/// Steering by the buttons. The motors of the original lack the required methods, so every movement raises an exception.
struct ButtonSteering: Sendable, Equatable {
  private(set) var isStopped = true

  mutating func handle(_ frame: ReceivedFrame) throws(PythonException) {
    switch frame.name {
    case "LeftButtonTouchDown" where !isStopped, "RightButtonTouchDown" where !isStopped, "LeftButtonTouchUp", "RightButtonTouchUp":
      throw .attribute
    case "Stop":
      isStopped = true
      throw .attribute
    case "Continue": isStopped = false
    default: break
    }
  }
}

/// Line following: a thread sets the motors every 10 ms. The simulated line is straight.
struct LineSteering: Sendable, Equatable {
  static let period: Nanoseconds = 10 * .millisecond
  private static let speed = CarWheels(left: 17, right: 17)

  private(set) var isStopped = true
  /// Whether the thread has started to set the motors.
  private var hasBegun = false

  /// The motor setpoints of the thread, or nil before it has started to set the motors.
  var wheels: CarWheels? { !isStopped ? LineSteering.speed : hasBegun ? .still : nil }

  mutating func handle(_ frame: ReceivedFrame, _ state: inout CarState) throws(PythonException) {
    switch (frame.name, frame.text) {
    case ("Stop", _), ("SpeechRecognition", "STOP"): (isStopped, state.wheels) = (true, .still)
    case ("Continue", _):
      (isStopped, hasBegun) = (false, true)
      throw .attribute
    case ("SpeechRecognition", "DRIVE"): (isStopped, hasBegun, state.wheels) = (false, true, LineSteering.speed)
    default: break
    }
  }
}

/// The current steering.
enum CarSteering: Sendable, Equatable {
  case tilt(TiltSteering)
  case buttons(ButtonSteering)
  case line(LineSteering)

  var isStopped: Bool {
    switch self {
    case .tilt(let steering): steering.isStopped
    case .buttons(let steering): steering.isStopped
    case .line(let steering): steering.isStopped
    }
  }

  mutating func handle(_ frame: ReceivedFrame, _ state: inout CarState) throws(PythonException) {
    switch self {
    case .tilt(var steering):
      defer { self = .tilt(steering) }
      try steering.handle(frame, &state)
    case .buttons(var steering):
      defer { self = .buttons(steering) }
      try steering.handle(frame)
    case .line(var steering):
      defer { self = .line(steering) }
      try steering.handle(frame, &state)
    }
  }
}
