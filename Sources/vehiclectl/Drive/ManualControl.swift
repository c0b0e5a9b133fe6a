// How keys and sticks drive a device: by tilting (an RC car) or with a throttle (a longboard). The schema of the device decides. No I/O.

import Protocols
import Varlink

/// A way to drive a device by hand.
protocol ManualControl {
  /// The limit at the start, as a fraction of the maximum.
  var initialLimit: Double { get }
  /// The name of the limit that the digit keys set.
  var limitName: String { get }
  /// Whether a released key must not look held for longer than `Throttle.hold`. A connection that can delay keys is then too risky.
  var needsTimelyRelease: Bool { get }
  /// The setpoint that moves nothing.
  var neutral: DriveRequest { get }
  /// The setpoint for the deflection of a stick or, if it is nil, for the keys.
  func setPoint(_ stick: Deflection?, limit: Double, at now: Double) -> DriveRequest
  /// Handles a key of the terminal that is pressed or repeats. `isDown` is whether a keyboard reports the key as down.
  mutating func press(_ direction: Steering.Direction, isDown: Bool, at now: Double)
  /// Handles the keys that a keyboard reports.
  mutating func update(_ keyboard: any Keyboard)
  /// Returns to neutral at once.
  mutating func release()
  /// The bars for the last setpoint sent, which is nil before the first one.
  func bars(_ sent: DriveRequest?) -> [DriveBar]
  /// The keys, in one line.
  func help(isStick: Bool) -> String
}

/// One quantity of a setpoint.
struct DriveBar: Equatable {
  let name: String
  /// The value with its unit, or nil if no setpoint was sent yet.
  let text: String?
  /// The fraction of the maximum: -1 to 1, or 0 to 1 if not `isSigned`.
  let share: Double
  let isSigned: Bool
  let remark: String
}

/// Tilts a device with the motion action `tilt`.
struct TiltControl: ManualControl {
  /// Whether `tilt` accepts angles relative to the neutral position, which suit keys and sticks.
  let isRelative: Bool
  private var steering = Steering()

  init(isRelative: Bool) { self.isRelative = isRelative }

  let initialLimit = 0.4
  let limitName = "tilt limit"
  let needsTimelyRelease = false
  var neutral: DriveRequest { request(Deflection(), limit: 0) }

  func setPoint(_ stick: Deflection?, limit: Double, at now: Double) -> DriveRequest {
    request(stick ?? steering.deflection(at: now), limit: limit)
  }

  private func request(_ deflection: Deflection, limit: Double) -> DriveRequest {
    let tilt = deflection.tilt(limit: limit)
    var arguments: [String: Value] = ["roll": .float(tilt.roll), "pitch": .float(tilt.pitch)]
    if isRelative { arguments["relative"] = .bool(true) }
    return .run(action: "tilt", arguments: arguments, motion: true)
  }

  mutating func press(_ direction: Steering.Direction, isDown: Bool, at now: Double) { steering.press(direction, at: now) }
  mutating func update(_ keyboard: any Keyboard) {}
  mutating func release() { steering.release() }

  func bars(_ sent: DriveRequest?) -> [DriveBar] {
    var angles: [String: Value] = [:]
    if case .run(_, let arguments, _)? = sent { angles = arguments }
    return [
      bar("roll", angles["roll"]?.number, full: .pi / 4, ("backward", "forward")),
      bar("pitch", angles["pitch"]?.number, full: 80 * .pi / 180, ("left", "right")),
    ]
  }

  private func bar(_ name: String, _ angle: Double?, full: Double, _ directions: (String, String)) -> DriveBar {
    let hundredths = ((angle ?? 0) * 100).rounded()
    let remark = hundredths == 0 ? "level" : hundredths < 0 ? directions.0 : directions.1
    return DriveBar(
      name: name, text: angle.map { _ in "\(Value.text(hundredths / 100 + 0)) rad" }, share: (angle ?? 0) / full, isSigned: true,
      remark: angle == nil ? "" : remark)
  }

  func help(isStick: Bool) -> String {
    isStick ? "stick or wheel steer   B, space stop   A, Enter continue" : "arrows or WASD steer   space stop   Enter continue"
  }
}

/// Drives a device with motion properties: the first one named `target-…`, and `brake-…` of the same unit if there is one.
struct ThrottleControl: ManualControl {
  private struct Target {
    let name: String
    let unit: String?
    let range: ClosedRange<Double>

    init?(_ property: Contract.Property) {
      guard property.motion, property.type == ValueType.float.rawValue, let low = property.minimum, let high = property.maximum, low <= 0,
        high > 0
      else { return nil }
      (name, unit, range) = (property.name, property.unit, low...high)
    }
  }

  private let target: Target
  private let brake: Target?
  private var throttle = Throttle()

  /// Returns nil if no property is such a target.
  init?(_ properties: [Contract.Property]) {
    let targets = properties.compactMap(Target.init)
    guard let target = targets.first(where: { $0.name.hasPrefix("target-") }) else { return nil }
    self.target = target
    brake = targets.first { $0.name.hasPrefix("brake-") && $0.unit == target.unit }
  }

  let initialLimit = 0.2
  let limitName = "throttle limit"
  let needsTimelyRelease = true
  var neutral: DriveRequest { .set(property: target.name, .float(0)) }

  func setPoint(_ stick: Deflection?, limit: Double, at now: Double) -> DriveRequest {
    let value = stick?.forward ?? throttle.value(at: now)
    if value < 0, let brake { return .set(property: brake.name, .float(rounded(-value * brake.range.upperBound))) }
    return .set(
      property: target.name, .float(rounded(value < 0 ? -value * limit * target.range.lowerBound : value * limit * target.range.upperBound))
    )
  }

  /// Two decimal places, without a negative zero.
  private func rounded(_ number: Double) -> Double { (number * 100).rounded() / 100 + 0 }

  mutating func press(_ direction: Steering.Direction, isDown: Bool, at now: Double) {
    switch direction {
    case .forward: throttle.press(1, isDown: isDown, brakes: false, at: now)
    case .backward: throttle.press(-1, isDown: isDown, brakes: brake != nil, at: now)
    case .left, .right: break
    }
  }

  mutating func update(_ keyboard: any Keyboard) {
    throttle.update { keyboard.isDown($0 > 0 ? .forward : .backward) }
  }

  mutating func release() { throttle.release() }

  func bars(_ sent: DriveRequest?) -> [DriveBar] {
    let (name, number): (String?, Double) =
      if case .set(let property, let value)? = sent { (property, value.number ?? 0) } else { (nil, 0) }
    let isSigned = brake == nil && target.range.lowerBound < 0
    return [(target, "throttle", isSigned), (brake, "brake", false)].compactMap { target, title, isSigned in
      guard let target else { return nil }
      let value = target.name == name ? number : 0
      let full = value < 0 ? -target.range.lowerBound : target.range.upperBound
      return DriveBar(
        name: title, text: name.map { _ in Value.text(value) + (target.unit.map { " \($0)" } ?? "") }, share: value / full,
        isSigned: isSigned, remark: "of \(Value.text(full))\(target.unit.map { " \($0)" } ?? "")")
    }
  }

  func help(isStick: Bool) -> String {
    let back = brake == nil ? target.range.lowerBound < 0 ? "backwards" : "nothing" : "brake"
    return isStick ? "stick or pedals: throttle and \(back)   B, space zero" : "hold ↑ or W: throttle   hold ↓ or S: \(back)   space zero"
  }
}
