// What the configuration says of a VESC: how often to ask it, which one, what it moves, and what it may be told.

/// The options of a longboard that is a VESC.
struct VESCOptions: Sendable {
  /// Questions a second.
  var rate: Double
  /// The VESC on the CAN bus behind the link that is spoken to; nil: the one on the link.
  var can: UInt8?
  var geometry: VESCGeometry
  /// Battery cells in series.
  var cells: Int?
  var allowsMotion: Bool
  /// The most motor current that may be asked for, in A.
  var motionCurrent: Double
  /// The highest duty cycle that may be asked for, in %; nil: none, for no current limit of ours holds at a duty cycle.
  var motionDuty: Double?
  var modes: [VESCMode]

  init(_ setup: Setup) throws(OptionError) {
    let options = setup.options
    func number(_ name: String) -> Double? { options[name]?.number.flatMap { $0.isFinite ? $0 : nil } }
    rate = min(max(number("rate") ?? 20, 0.1), 50)
    can = number("can-id").map { UInt8(clamping: Int($0)) }
    geometry = VESCGeometry(
      polePairs: number("pole-pairs"), gearRatio: number("gear-ratio"), wheel: number("wheel-diameter").map { $0 / 1000 })
    cells = number("cells").map { Int($0) }
    allowsMotion = options["allow-motion"] == .bool(true)
    motionCurrent = min(max(number("motion-current") ?? 10, 0.1), 300)
    motionDuty = number("motion-duty").map { min(max($0, 1), 100) }
    modes = (setup.sections["mode"] ?? []).map(VESCMode.init)
    if modes.contains(where: { $0.name == VESCMode.full }) {
      throw OptionError("mode", "\"full\" is built in: it gives the VESC its own limits back; choose another name")
    }
  }
}

/// How the motor's electrical turns become a way on the road.
struct VESCGeometry: Sendable, Equatable {
  /// Electrical turns for one of the motor.
  var polePairs: Double?
  /// Turns of the motor for one of the wheel.
  var gearRatio: Double?
  /// Diameter of the wheel in m.
  var wheel: Double?

  /// Without nonsense: what a VESC that was never set up says.
  init(polePairs: Double? = nil, gearRatio: Double? = nil, wheel: Double? = nil) {
    func sensible(_ number: Double?, _ range: ClosedRange<Double>) -> Double? { number.flatMap { range.contains($0) ? $0 : nil } }
    self.polePairs = sensible(polePairs, 1...200)
    self.gearRatio = sensible(gearRatio, 0.05...200)
    self.wheel = sensible(wheel, 0.01...10)
  }

  var isEmpty: Bool { self == VESCGeometry() }

  /// What is known here, and for the rest what the other knows.
  func completed(by other: VESCGeometry?) -> VESCGeometry {
    VESCGeometry(polePairs: polePairs ?? other?.polePairs, gearRatio: gearRatio ?? other?.gearRatio, wheel: wheel ?? other?.wheel)
  }

  /// Metres for one electrical turn.
  var metres: Double? {
    guard let polePairs, let gearRatio, let wheel else { return nil }
    return Double.pi * wheel / polePairs / gearRatio
  }

  /// The keys that would have to be set.
  var missing: String {
    let keys = [("pole-pairs", polePairs == nil), ("gear-ratio", gearRatio == nil), ("wheel-diameter", wheel == nil)]
    return keys.filter(\.1).map(\.0).joined(separator: ", ")
  }
}

/// A speed mode: how much of its own limits a VESC is left.
struct VESCMode: Sendable, Equatable {
  /// The VESC's own limits; built in.
  static let full = "full"

  var name: String
  /// Part of the motor current, 0 to 1.
  var current: Double
  /// km/h, both ways.
  var speed: Double?

  init(_ section: Setup.Subsection) {
    name = section.name
    current = min(max((section.options["current"]?.number ?? 100) / 100, 0), 1)
    speed = section.options["speed"]?.number
  }
}
