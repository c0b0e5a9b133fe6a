// One measurement of a foot pod, which it sends about once a second.
//
//   flags  speed        cadence  [stride]  [distance]      Bit 0: stride length follows. Bit 1: total distance follows.
//   1      2, m/s/256   1, /min  2, cm     4, 0.1 m        Bit 2: running, else walking.
//
// Source: Running Speed and Cadence Service 1.0, 3.1; GATT Specification Supplement, RSC Measurement.

/// The contents of a notification of 2A53.
struct RunningMeasurement: SensorMeasurement, Equatable {
  /// The speed in 1/256 m/s.
  var speed: Int
  /// Steps per minute.
  var cadence: Int
  /// The stride length in cm.
  var stride: Int?
  /// The distance in 0.1 m.
  var distance: Int?
  var isRunning: Bool

  static let properties = [
    Property("speed", .float, unit: "km/h", range: 0...922, lifetime: .fresh(5 * .second), group: .health, rank: .headline, help: "Speed"),
    Property(
      "cadence", .int, unit: "steps/min", range: 0...255, lifetime: .fresh(5 * .second), group: .health, rank: .headline,
      help: "Steps per minute"),
    Property("stride-length", .float, unit: "m", range: 0...656, lifetime: .fresh(5 * .second), group: .health, help: "Stride length"),
    Property(
      "distance", .float, unit: "km", range: 0...430_000, lifetime: .whileUp, group: .health, help: "Distance since the sensor was reset"),
    Property("running", .bool, lifetime: .fresh(5 * .second), group: .health, help: "The runner is running, not walking"),
  ]

  static let remedy = "check that it is moving and its battery is charged"

  init(_ bytes: [UInt8]) throws(ValueError) {
    var fields = SensorFields(bytes)
    let flags = try fields.next(1)
    speed = try fields.next(2)
    cadence = try fields.next(1)
    if flags & 1 != 0 { stride = try fields.next(2) }
    if flags & 2 != 0 { distance = try fields.next(4) }
    isRunning = flags & 4 != 0
    try fields.end()
  }

  func publish(_ effects: inout Effects) {
    effects.publish(0, .float((Double(speed) / 256 * 36).rounded() / 10))
    effects.publish(1, .int(cadence))
    if let stride { effects.publish(2, .float(Double(stride) / 100)) } else { effects.withdraw(2, "not reported by this sensor") }
    if let distance { effects.publish(3, .float(Double(distance) / 10_000)) } else { effects.withdraw(3, "not reported by this sensor") }
    effects.publish(4, .bool(isRunning))
  }
}
