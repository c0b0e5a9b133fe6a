// The configuration of a VESC: poll rate, CAN ID, drivetrain, and limits.

/// The options of a longboard with a VESC.
struct VESCOptions: Sendable {
  /// Polls per second.
  let rate: Double
  /// The CAN ID of a VESC that is reached through the VESC on the link, or nil for the VESC on the link itself.
  let canID: UInt8?
  let drivetrain: VESCDrivetrain
  /// Battery cells in series.
  let cells: Int?
  let allowsMotion: Bool
  /// The maximum motor current, in A.
  let maxMotorCurrent: Double
  /// The maximum duty cycle, in %. nil (the default) forbids duty cycles, because no current limit applies to them.
  let maxDutyCycle: Double?
  let modes: [VESCMode]

  init(_ setup: Setup) throws(OptionError) {
    let options = setup.options
    func number(_ name: String) -> Double? { options[name]?.number.flatMap { $0.isFinite ? $0 : nil } }
    rate = min(max(number("rate") ?? 20, 0.1), 50)
    canID = number("can-id").map { UInt8(clamping: Int($0)) }
    drivetrain = VESCDrivetrain(
      polePairs: number("pole-pairs"), gearRatio: number("gear-ratio"), wheelDiameter: number("wheel-diameter").map { $0 / 1000 })
    cells = number("cells").map { Int($0) }
    allowsMotion = options["allow-motion"] == .bool(true)
    maxMotorCurrent = min(max(number("max-motor-current") ?? 10, 0.1), 300)
    maxDutyCycle = number("max-duty-cycle").map { min(max($0, 1), 100) }
    modes = (setup.sections["mode"] ?? []).map(VESCMode.init)
    if modes.contains(where: { $0.name == VESCMode.full }) {
      throw OptionError("mode", "\"full\" is a built-in mode (the VESC's own limits); use another name")
    }
  }
}

/// The conversion of electrical revolutions of the motor to distance.
struct VESCDrivetrain: Sendable, Equatable {
  /// Electrical revolutions per motor revolution.
  let polePairs: Double?
  /// Motor revolutions per wheel revolution.
  let gearRatio: Double?
  /// Diameter of the wheel in m.
  let wheelDiameter: Double?

  /// Creates a drivetrain without implausible values. A VESC that was never set up reports such values.
  init(polePairs: Double? = nil, gearRatio: Double? = nil, wheelDiameter: Double? = nil) {
    func sensible(_ number: Double?, _ range: ClosedRange<Double>) -> Double? { number.flatMap { range.contains($0) ? $0 : nil } }
    self.polePairs = sensible(polePairs, 1...200)
    self.gearRatio = sensible(gearRatio, 0.05...200)
    self.wheelDiameter = sensible(wheelDiameter, 0.01...10)
  }

  var isEmpty: Bool { self == VESCDrivetrain() }

  /// This drivetrain, with missing values from another one.
  func completed(by other: VESCDrivetrain?) -> VESCDrivetrain {
    VESCDrivetrain(
      polePairs: polePairs ?? other?.polePairs, gearRatio: gearRatio ?? other?.gearRatio,
      wheelDiameter: wheelDiameter ?? other?.wheelDiameter)
  }

  /// The distance in m per electrical revolution of the motor; nil if a value is missing.
  var metresPerElectricalRevolution: Double? {
    guard let polePairs, let gearRatio, let wheelDiameter else { return nil }
    return Double.pi * wheelDiameter / polePairs / gearRatio
  }

  /// The configuration keys of missing values.
  var missing: String {
    let keys = [("pole-pairs", polePairs == nil), ("gear-ratio", gearRatio == nil), ("wheel-diameter", wheelDiameter == nil)]
    return keys.filter(\.1).map(\.0).joined(separator: ", ")
  }
}

/// A speed mode: reduced limits of a VESC.
struct VESCMode: Sendable, Equatable {
  /// The name of the built-in mode with the VESC's own limits.
  static let full = "full"

  let name: String
  /// The fraction of the motor current limit, 0 to 1.
  let current: Double
  /// The maximum speed in km/h, in both directions, or nil if it is not limited.
  let speed: Double?

  init(_ section: Setup.Subsection) {
    name = section.name
    current = min(max((section.options["current"]?.number ?? 100) / 100, 0), 1)
    speed = section.options["speed"]?.number
  }
}
