// One heart rate measurement, which a strap sends about once a second. A rate without skin contact is not published.
//
//   flags  rate      [energy]  [RR …]        Bit 0: the rate has two bytes. Bits 2-1: 10 no contact, 11 contact, else not known.
//   1      1 or 2    2, kJ     2 each,       Bit 3: energy follows. Bit 4: one or more RR intervals follow.
//                              1/1024 s
//
// Source: Heart Rate Service 1.0, 3.1; GATT Specification Supplement, Heart Rate Measurement.

/// The contents of a notification of 2A37.
struct HeartRateMeasurement: SensorMeasurement, Equatable {
  /// The heart rate in bpm.
  var rate: Int
  /// Whether the strap has skin contact; nil if it cannot detect skin contact.
  var contact: Bool?
  /// The energy in kJ since the strap was reset.
  var energy: Int?
  /// The RR intervals in 1/1024 s, the newest last.
  var intervals: [Int] = []

  /// Plausible heart rates in bpm.
  private static let plausible = 20...300

  static let properties = [
    Property(
      "heart-rate", .float, unit: "bpm", range: 20...300, lifetime: .fresh(5 * .second), group: .health, rank: .headline,
      help: "Heart rate; absent without skin contact"),
    Property("contact", .bool, lifetime: .fresh(5 * .second), group: .health, help: "The strap has skin contact"),
    Property(
      "energy-expended", .float, unit: "kcal", lifetime: .whileUp, group: .health, help: "Energy expended since the strap was reset"),
    Property(
      "rr-interval", .float, unit: "ms", lifetime: .fresh(5 * .second), group: .health, rank: .detail,
      help: "Interval between the last two heartbeats (RR)"),
  ]

  static let remedy = "check that it is worn, its electrodes are moist and its battery is charged"

  init(_ bytes: [UInt8]) throws(ValueError) {
    var fields = SensorFields(bytes)
    let flags = try fields.next(1)
    rate = try fields.next(flags & 1 == 0 ? 1 : 2)
    contact = flags & 4 == 0 ? nil : flags & 2 != 0
    if flags & 8 != 0 { energy = try fields.next(2) }
    if flags & 16 != 0 {
      repeat { intervals.append(try fields.next(2)) } while !fields.isEmpty
    }
    try fields.end()
  }

  func publish(_ effects: inout Effects) {
    if contact == false {
      for index in [0, 3] { effects.withdraw(index, "no skin contact") }
    } else if Self.plausible.contains(rate) {
      effects.publish(0, .float(Double(rate)))
    } else {
      effects.withdraw(0, rate == 0 ? "not measured yet" : "implausible rate of \(rate) bpm: check how the strap is worn")
    }
    if let contact { effects.publish(1, .bool(contact)) } else { effects.withdraw(1, "not reported by this strap") }
    // Straps do not send the energy with every measurement, so the last value stays published.
    if let energy { effects.publish(2, .float((Double(energy) / 4.184 * 10).rounded() / 10)) }
    if contact != false, let last = intervals.last { effects.publish(3, .float((Double(last) * 10_000 / 1024).rounded() / 10)) }
  }
}
