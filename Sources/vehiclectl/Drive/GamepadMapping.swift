// Maps the axes and buttons of an input device to driving. No I/O. The axes have no effect until every axis has been at rest once.
// Sources: the kernel's Documentation/input/gamepad.rst and input-event-codes.h; Logitech and Thrustmaster wheels report pedals on Z and
// RZ, inverted: released is the maximum.

import CEvdev

struct GamepadMapping {
  /// The dead zone around the position at rest, as a fraction of the range.
  static let deadZone = 0.08

  /// A change of a button, by its function while driving. `go` is the action `continue`.
  enum Press: Equatable {
    case go, stop, end
    case button(CarButton, isDown: Bool)
  }

  /// An axis as the device describes it.
  private struct Axis {
    let code: Int
    let low: Double
    let high: Double
    /// The position at rest: the middle of the range, or one end of it.
    let rest: Double
    /// -1 to 1, 0 at rest.
    var value = 0.0
    var wasAtRest = false

    init(_ code: Int32, _ range: ClosedRange<Int>, rest: Double? = nil) {
      self.code = Int(code)
      low = Double(range.lowerBound)
      high = Double(range.upperBound)
      self.rest = rest ?? (low + high) / 2
    }

    mutating func update(_ raw: Int) {
      let span = rest == low || rest == high ? high - low : (high - low) / 2
      let part = span > 0 ? min(1, max(-1, (Double(raw) - rest) / span)) : 0
      let beyond = max(0, abs(part) - GamepadMapping.deadZone) / (1 - GamepadMapping.deadZone)
      if beyond == 0 { wasAtRest = true }
      value = !wasAtRest || beyond == 0 ? 0 : part < 0 ? -beyond : beyond
    }
  }

  /// Steering first; then the stick's other axis, or accelerator and brake.
  private var axes: [Axis]
  private let isWheel: Bool

  /// Creates the mapping for a device with these axis ranges and keys; nil if it is not suitable for driving.
  init?(axes ranges: [Int: ClosedRange<Int>], keys: Swift.Set<Int>) {
    func range(_ code: Int32) -> ClosedRange<Int>? { ranges[Int(code)].flatMap { $0.lowerBound < $0.upperBound ? $0 : nil } }
    func has(_ key: Int32) -> Bool { keys.contains(Int(key)) }
    let isGamepad = has(BTN_SOUTH)
    if !isGamepad || range(ABS_WHEEL) != nil, let turn = range(ABS_WHEEL) ?? range(ABS_X) {
      let wheel = Axis(range(ABS_WHEEL) == nil ? ABS_X : ABS_WHEEL, turn)
      if let gas = range(ABS_GAS), let brake = range(ABS_BRAKE) {
        axes = [wheel, Axis(ABS_GAS, gas, rest: Double(gas.lowerBound)), Axis(ABS_BRAKE, brake, rest: Double(brake.lowerBound))]
        isWheel = true
        return
      }
      if !isGamepad, has(BTN_JOYSTICK), let gas = range(ABS_Z), let brake = range(ABS_RZ) {
        axes = [wheel, Axis(ABS_Z, gas, rest: Double(gas.upperBound)), Axis(ABS_RZ, brake, rest: Double(brake.upperBound))]
        isWheel = true
        return
      }
    }
    guard isGamepad || has(BTN_JOYSTICK), let x = range(ABS_X), let y = range(ABS_Y) else { return nil }
    axes = [Axis(ABS_X, x), Axis(ABS_Y, y)]
    isWheel = false
  }

  /// The axes in use.
  var codes: [Int] { axes.map(\.code) }

  /// Applies the position of an axis.
  mutating func setAxis(_ code: Int, to value: Int) {
    if let position = axes.firstIndex(where: { $0.code == code }) { axes[position].update(value) }
  }

  /// The function of a key or button that is pressed.
  func pressed(_ code: Int) -> Press? {
    switch Int32(code) {
    case BTN_TL: .button(.left, isDown: true)
    case BTN_TR: .button(.right, isDown: true)
    case BTN_SOUTH, BTN_TRIGGER: .go
    case BTN_EAST, BTN_THUMB: .stop
    case BTN_START: .end
    default: nil
    }
  }

  /// The function of a key or button that is released.
  func released(_ code: Int) -> Press? {
    switch Int32(code) {
    case BTN_TL: .button(.left, isDown: false)
    case BTN_TR: .button(.right, isDown: false)
    default: nil
    }
  }

  /// Whether all axes have been at rest once. Until then the deflection is zero.
  var isArmed: Bool { axes.allSatisfy(\.wasAtRest) }

  /// The deflection of the stick, or of wheel and pedals.
  var deflection: Deflection {
    guard isArmed else { return Deflection() }
    let turn = axes[0].value
    return Deflection(forward: isWheel ? abs(axes[1].value) - abs(axes[2].value) : -axes[1].value, turn: turn)
  }
}
