// The monitors of all ECUs (SAE J1979): MIL and readiness monitors (PIDs 01 and 41), and on CAN the test results (service 06) with values
// and limits.

struct MonitorList: MultiECUQuery {
  static let columns = ["ecu", "what", "name", "test", "result", "value", "min", "max", "unit"]
  /// The values of column `what`.
  static let (lamp, codes, readiness, test) = ("lamp", "codes", "readiness", "test")

  private struct Question: Equatable {
    let bytes: [UInt8]
    let target: Target?

    init(bytes: [UInt8], target: Target? = nil) { (self.bytes, self.target) = (bytes, target) }
  }

  private let isCAN: Bool
  private var plan: [Question]
  private var rows: [(source: UInt32?, cells: [String])] = []
  /// The ECUs that responded, and those with test results.
  private var ecus: Set<UInt32?> = []
  private var tested: Set<UInt32?> = []
  private var doubts: [String] = []
  private var asked = 0

  init(isCAN: Bool) {
    self.isCAN = isCAN
    plan = [Question(bytes: [0x01, 0x01]), Question(bytes: [0x01, 0x41])] + (isCAN ? [Question(bytes: [0x06, 0x00])] : [])
  }

  var questions: [[UInt8]] { plan.map(\.bytes) }
  func target(of place: Int) -> Target? { plan[place].target }
  var isLong: Bool { true }

  mutating func take(_ answers: [ECUAnswer], _ place: Int) throws(Unreadable) {
    asked += 1
    let question = plan[place].bytes
    for (source, message) in answers.putOff {
      doubts.append(ECUAnswer.message(source, "does not report \(spacedHex(question)): \(message)"))
    }
    for answer in answers where answer.refusal == nil {
      ecus.insert(answer.source)
      switch (question[0], question[1]) {
      case (0x01, let number): try takeReadiness(answer, number)
      case (_, let base) where base % 0x20 == 0: takeBitmap(answer, base)
      default: try takeResults(answer)
      }
    }
  }

  mutating func missed(_ place: Int, _ reason: String) -> Bool {
    asked += 1
    doubts.append("\(plan[place].target.map { "\($0.reply?.text ?? $0.text): " } ?? "")\(spacedHex(plan[place].bytes)): \(reason)")
    return true
  }

  private mutating func takeReadiness(_ answer: ECUAnswer, _ number: UInt8) throws(Unreadable) {
    guard answer.bytes.count == 6 else { throw Unreadable("response length differs from SAE J1979") }
    let data = answer.bytes[2...]
    if number == 0x01 {
      let first = answer.bytes[2]
      add(answer.source, [Self.lamp, "malfunction indicator lamp (MIL)", "", first & 0x80 != 0 ? "on" : "off", "", "", "", ""])
      add(answer.source, [Self.codes, "stored trouble codes", "", "", String(first & 0x7F), "", "", ""])
    }
    for monitor in Array(data).withUnsafeBufferPointer({ Readiness.monitors($0) }) {
      let when = number == 0x01 ? ReadinessPeriod.sinceClearing : ReadinessPeriod.thisDrivingCycle
      add(answer.source, [Self.readiness, monitor.name, when, monitor.isComplete ? "complete" : "incomplete", "", "", "", ""])
    }
  }

  /// Adds a request for each monitor that an ECU supports.
  private mutating func takeBitmap(_ answer: ECUAnswer, _ base: UInt8) {
    guard answer.bytes.count == 6 else { return }
    let numbers = StandardParameter.supported(answer.bytes[2...], base: base)
    let target = answer.source.flatMap { Target(respondingFrom: CANIdentifier($0)) }
    for number in numbers where number % 0x20 != 0 || base < 0xE0 && number == base + 0x20 {
      let question = Question(bytes: [0x06, number], target: target)
      if !plan.contains(question) { plan.append(question) }
    }
    tested.insert(answer.source)
  }

  private mutating func takeResults(_ answer: ECUAnswer) throws(Unreadable) {
    switch TestResult.read(answer.bytes[...]) {
    case .broken(let reason): throw Unreadable(reason)
    case .results(let results):
      for result in results {
        add(
          answer.source,
          [
            Self.test, result.monitorName ?? "monitor \(spacedHex([result.monitor]))",
            result.testName ?? "test \(spacedHex([result.test]))", result.hasRun ? result.hasPassed ? "passed" : "failed" : "not run",
            Value.text(result.value), Value.text(result.minimum), Value.text(result.maximum), result.unit ?? (result.isScaled ? "" : "raw"),
          ])
      }
    }
  }

  private mutating func add(_ source: UInt32?, _ cells: [String]) { rows.append((source, [CANReader.name(of: source)] + cells)) }

  var objection: CommandError? {
    guard asked >= (isCAN ? 3 : 2), ecus.isEmpty, doubts.isEmpty else { return nil }
    return .refused(
      code: .noAnswer, "no ECU responds: the ignition is off, or the vehicle has no SAE J1979 (OBD-II) monitors, like many electric cars")
  }

  var report: Report {
    var lines = doubts
    let without = ecus.subtracting(tested).sorted { $0 ?? 0 < $1 ?? 0 }.map { CANReader.name(of: $0) }
    if !isCAN {
      lines.append("test results (service 06) are read on CAN only")
    } else if tested.isEmpty {
      lines.append("test results (service 06) are not supported")
    } else if !without.isEmpty {
      lines.append("test results (service 06) are not supported by \(without.joined(separator: ", "))")
    }
    let order = [Self.lamp, Self.codes, Self.readiness, Self.test]
    let sorted = rows.enumerated().sorted { one, other in
      func rank(_ row: (offset: Int, element: (source: UInt32?, cells: [String]))) -> (UInt32, Int, Int) {
        (row.element.source ?? 0, order.firstIndex(of: row.element.cells[1]) ?? 0, row.offset)
      }
      return rank(one) < rank(other)
    }
    return Report(text: lines.isEmpty ? nil : lines.joined(separator: "\n"), columns: Self.columns, rows: sorted.map(\.element.cells))
  }
}
