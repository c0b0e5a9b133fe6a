// Whether a vehicle moves or its engine runs, as its controllers say when they are asked. What nobody tells is not known, never 0.
// Facts: SAE J1979, parameters 0C and 0D; the battery page of electric Hyundai and Kia.

struct Motion: Sendable, Equatable {
  static let questions: [[UInt8]] = [[0x01, 0x0D], [0x01, 0x0C]]

  /// km/h, of the controller that says most.
  private(set) var roadSpeed: Int?
  /// rpm, likewise.
  private(set) var engineSpeed: Double?
  /// rpm of a drive motor, as the battery page told of late.
  let motorSpeed: Double?

  init(motorSpeed: Double? = nil) { self.motorSpeed = motorSpeed }

  mutating func take(_ answers: [SurveyAnswer]) throws(Unreadable) {
    for answer in try answers.told() {
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
  var isMoving: Bool { roadSpeed ?? 0 > 0 || engineSpeed ?? 0 > 0 || motorSpeed ?? 0 > 0 }

  /// `road speed 50 km/h, engine speed 2100 rpm`; empty where nothing is known.
  var words: String {
    [
      roadSpeed.map { "road speed \($0) km/h" }, engineSpeed.map { "engine speed \(Value.text($0)) rpm" },
      motorSpeed.map { "motor speed \(Value.text($0)) rpm" },
    ].compactMap { $0 }.joined(separator: ", ")
  }

  /// Why nothing is cleared now.
  var objection: String? {
    isMoving ? "trouble codes are cleared only while the vehicle stands and its engine does not run (\(words)): \(Self.mend)" : nil
  }
  var refusal: CommandError? { objection.map { .refused(code: "moving", $0) } }

  /// What makes controllers willing.
  static let mend = "stop, switch the engine off, and leave the ignition on"
}
