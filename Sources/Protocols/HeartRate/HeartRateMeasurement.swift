// One heart rate measurement, as a strap tells it about once a second. It must never show what a strap without contact guesses.
//
//   flags  rate      [energy]  [RR …]        Bit 0: the rate has two bytes. Bits 2-1: 10 no contact, 11 contact, else not known.
//   1      1 or 2    2, kJ     2 each,       Bit 3: energy follows. Bit 4: one or more RR intervals follow.
//                              1/1024 s
//
// Facts: Heart Rate Service 1.0, 3.1; GATT Specification Supplement, Heart Rate Measurement.

/// What came at 2A37.
struct HeartRateMeasurement: SensorMeasurement, Equatable {
  /// bpm.
  var rate: Int
  /// Whether the strap touches the skin; nil: it cannot tell.
  var contact: Bool?
  /// kJ since the strap was reset.
  var energy: Int?
  /// 1/1024 s, the newest last.
  var intervals: [Int] = []

  /// bpm of a living person.
  private static let believable = 20...300

  static let properties = [
    Property(
      "heart-rate", .float, unit: "bpm", range: 20...300, lifetime: .fresh(5 * .second), help: "Heart rate; absent without contact"),
    Property("contact", .bool, lifetime: .fresh(5 * .second), help: "The strap touches the skin"),
    Property("energy-expended", .float, unit: "kcal", lifetime: .whileUp, help: "Energy spent since the strap was reset"),
    Property("rr-interval", .float, unit: "ms", lifetime: .fresh(5 * .second), help: "Time between the last two heartbeats"),
  ]

  static let remedy = "is it worn, its electrodes wet, its battery charged?"

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
      for index in [0, 3] { effects.withdraw(index, "the strap does not touch the skin") }
    } else if Self.believable.contains(rate) {
      effects.publish(0, .float(Double(rate)))
    } else {
      effects.withdraw(0, rate == 0 ? "the strap has not measured one yet" : "the strap says \(rate) bpm, which cannot be: how is it worn?")
    }
    if let contact { effects.publish(1, .bool(contact)) } else { effects.withdraw(1, "this strap does not tell") }
    // A strap tells it now and then.
    if let energy { effects.publish(2, .float((Double(energy) / 4.184 * 10).rounded() / 10)) }
    if contact != false, let last = intervals.last { effects.publish(3, .float((Double(last) * 10_000 / 1024).rounded() / 10)) }
  }
}
