// Who steers the simulated car: its program makes a new one of these at every change of the mode, and each has its own
// idea of whether it is stopped. What raises in the original raises here, and at the same step: that is how a Stop is
// taken note of and the wheels turn on. It knows no link. Facts: autott.md §4, §5, §8 (Steering.py, Lights.py).

/// What Python raises in a handler; whatever else came with the same read is lost.
struct PythonException: Error, Equatable {
  var name: String

  static let attribute = PythonException(name: "AttributeError")
  static let value = PythonException(name: "ValueError")
  static let index = PythonException(name: "IndexError")
}

/// What of the car can be seen from outside.
struct CarBody: Sendable, Equatable {
  var wheels = CarWheels.still
  var lights = CarLights()
  var isCameraOn = false
  var isStreaming = false
}

/// A side of the car, and the half of the screen that stands for it.
enum IndicatorSide: Sendable { case left, right }

/// The lights, which outlive a change of the mode.
struct CarLights: Sendable, Equatable {
  var areOn = false
  var isHighBeam = false
  /// The indicators that blink.
  var indicators: Set<IndicatorSide> = []

  /// `off`, or what is on: `low` or `high`, then `left`, `right` for indicators that blink.
  var text: String {
    let words = [
      areOn ? isHighBeam ? "high" : "low" : nil, indicators.contains(.left) ? "left" : nil, indicators.contains(.right) ? "right" : nil,
    ].compactMap(\.self)
    return words.isEmpty ? "off" : words.joined(separator: " ")
  }
}

/// Steered by tilt; in some modes the buttons are indicators.
struct TiltSteering: Sendable, Equatable {
  private(set) var isStopped = true
  /// Only where it is true was the attribute ever made; elsewhere to ask for it raises.
  let hasIndicators: Bool
  /// The indicator it has switched on.
  private var indicator: IndicatorSide?
  private var isHighBeam = false

  init(hasIndicators: Bool) { self.hasIndicators = hasIndicators }

  mutating func take(_ word: ReceivedFrame, _ body: inout CarBody) throws(PythonException) {
    switch word.name {
    case "Gyro" where !isStopped:
      let parts = word.body.split(separator: 0x3B, maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, let roll = PythonNumber.float(parts[0]), let pitch = PythonNumber.float(parts[1]),
        PythonNumber.float(parts[2]) != nil
      else { throw .value }
      body.wheels = CarWheels(roll: roll, pitch: pitch)
    case "Stop": (isStopped, body.wheels) = (true, .still)
    case "Continue": isStopped = false
    case _ where !hasIndicators: throw .attribute
    case "LeftButtonTouchDown": press(.left, &body.lights)
    case "RightButtonTouchDown": press(.right, &body.lights)
    case "LeftButtonTouchUp" where indicator == .left, "RightButtonTouchUp" where indicator == .right: putOut(&body.lights)
    default: break
    }
  }

  /// The second side pressed while the first is held is the high beam.
  private mutating func press(_ side: IndicatorSide, _ lights: inout CarLights) {
    switch indicator {
    case nil:
      indicator = side
      lights.indicators.insert(side)
    case side: putOut(&lights)
    default:
      isHighBeam.toggle()
      lights.isHighBeam = isHighBeam && lights.areOn
      putOut(&lights)
    }
  }

  private mutating func putOut(_ lights: inout CarLights) {
    if let indicator { lights.indicators.remove(indicator) }
    indicator = nil
  }
}

/// Steered by the buttons, as far as it goes: the motors have no such methods, so whatever should move them raises.
struct ButtonSteering: Sendable, Equatable {
  private(set) var isStopped = true

  mutating func take(_ word: ReceivedFrame) throws(PythonException) {
    switch word.name {
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

/// Follows a line by itself: a thread of the car that tells the motors every 10 ms. The simulated line is straight.
struct LineSteering: Sendable, Equatable {
  static let period: Int64 = 10_000_000
  private static let speed = CarWheels(left: 17, right: 17)

  private(set) var isStopped = true
  /// Its thread has begun to tell the motors something.
  private var hasBegun = false

  /// What its thread tells the motors, once it does.
  var wheels: CarWheels? { !isStopped ? LineSteering.speed : hasBegun ? .still : nil }

  mutating func take(_ word: ReceivedFrame, _ body: inout CarBody) throws(PythonException) {
    switch (word.name, word.text) {
    case ("Stop", _), ("SpeechRecognition", "STOP"): (isStopped, body.wheels) = (true, .still)
    case ("Continue", _):
      (isStopped, hasBegun) = (false, true)
      throw .attribute
    case ("SpeechRecognition", "DRIVE"): (isStopped, hasBegun, body.wheels) = (false, true, LineSteering.speed)
    default: break
    }
  }
}

/// The one that steers now.
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

  mutating func take(_ word: ReceivedFrame, _ body: inout CarBody) throws(PythonException) {
    switch self {
    case .tilt(var steering):
      defer { self = .tilt(steering) }
      try steering.take(word, &body)
    case .buttons(var steering):
      defer { self = .buttons(steering) }
      try steering.take(word)
    case .line(var steering):
      defer { self = .line(steering) }
      try steering.take(word, &body)
    }
  }
}
