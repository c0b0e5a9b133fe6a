// Whether the vehicle moves or its engine runs, as reported by its ECUs. An unreported speed is unknown, never 0. Source: SAE J1979, PIDs
// 0C and 0D; the BMS data of electric Hyundai and Kia.

struct Motion: Sendable, Equatable {
  static let requests: [[UInt8]] = [[0x01, 0x0D], [0x01, 0x0C]]

  /// The road speed in km/h, the highest of all ECUs.
  private(set) var roadSpeed: Int?
  /// The engine speed in rpm, the highest of all ECUs.
  private(set) var engineSpeed: Double?
  /// The speed of a drive motor in rpm, from recent BMS data.
  let motorSpeed: Double?

  init(motorSpeed: Double? = nil) { self.motorSpeed = motorSpeed }

  /// Takes over the polled speeds that are recent.
  init(_ polled: PolledSpeeds, at now: Instant) {
    motorSpeed = polled.motor.flatMap { $0.value(at: now) }
    roadSpeed = polled.road.flatMap { $0.value(at: now) }.map { Int($0) }
    engineSpeed = polled.engine.flatMap { $0.value(at: now) }
  }

  /// The last polled speeds.
  struct PolledSpeeds: Sendable {
    struct Speed: Sendable {
      let speed: Double
      let time: Instant

      private static let lifetime: Nanoseconds = 2 * .second

      /// The speed, unless it is too old.
      func value(at now: Instant) -> Double? { now &- time <= Self.lifetime ? speed : nil }
    }

    private(set) var motor: Speed?
    private(set) var road: Speed?
    private(set) var engine: Speed?

    /// Resets the motor speed before a data record with motor speeds is read.
    mutating func beginRecord() { motor = nil }

    /// Records the speed of a drive motor in rpm. If there are several motors, the highest speed is used.
    mutating func record(motor speed: Double, at now: Instant) { motor = Speed(speed: max(abs(speed), motor?.speed ?? 0), time: now) }

    /// Records the speed in the data of PID 0C or 0D; ignores other PIDs.
    mutating func record(_ parameter: UInt8, _ data: UnsafeBufferPointer<UInt8>, at now: Instant) {
      if parameter == 0x0D, data.count == 1 { road = Speed(speed: Double(data[0]), time: now) }
      if parameter == 0x0C, data.count == 2 { engine = Speed(speed: Double(UInt16(data[0]) << 8 | UInt16(data[1])) / 4, time: now) }
    }
  }

  /// Records the speeds in responses to `requests`.
  mutating func process(_ answers: [ECUAnswer]) throws(Unreadable) {
    for answer in try answers.positiveResponses() {
      let bytes = answer.bytes[...]
      let problem = StandardParameter.split(bytes) { number, data in
        let first = data.lowerBound
        if number == 0x0D { roadSpeed = max(roadSpeed ?? 0, Int(bytes[first])) }
        if number == 0x0C { engineSpeed = max(engineSpeed ?? 0, Double(UInt16(bytes[first]) << 8 | UInt16(bytes[first + 1])) / 4) }
      }
      if let problem { throw Unreadable(problem) }
    }
  }

  var isKnown: Bool { roadSpeed != nil || engineSpeed != nil || motorSpeed != nil }
  var isMovingOrRunning: Bool { roadSpeed ?? 0 > 0 || engineSpeed ?? 0 > 0 || motorSpeed ?? 0 > 0 }

  /// `road speed 50 km/h, engine speed 2100 rpm`; empty if nothing is known.
  var message: String {
    [
      roadSpeed.map { "road speed \($0) km/h" }, engineSpeed.map { "engine speed \(Value.text($0)) rpm" },
      motorSpeed.map { "motor speed \(Value.text($0)) rpm" },
    ].compactMap { $0 }.joined(separator: ", ")
  }

  /// The reason why codes are not cleared now; nil if neither motion nor a running engine is reported.
  var clearingError: CommandError? {
    guard isMovingOrRunning else { return nil }
    return .refused(
      code: .moving, "trouble codes are cleared only while the vehicle is stationary and its engine off (\(message)); \(Self.remedy)")
  }

  /// What the user must do so that ECUs accept clearing.
  static let remedy = "stop, switch the engine off, and leave the ignition on"
}
