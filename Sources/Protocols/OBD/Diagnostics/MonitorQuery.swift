// The monitors of all ECUs (SAE J1979): MIL and readiness monitors (PIDs 01 and 41), and on CAN the test results (service 06) with values
// and limits.

struct MonitorQuery: MultiECUQuery {
  static let columns = ["ecu", "what", "name", "test", "result", "value", "min", "max", "unit"]
  /// The values of column `what`.
  static let (lamp, codes, readiness, test) = ("lamp", "codes", "readiness", "test")

  private struct Request: Equatable {
    let bytes: [UInt8]
    let target: Target?

    init(bytes: [UInt8], target: Target? = nil) { (self.bytes, self.target) = (bytes, target) }
  }

  private let isCAN: Bool
  private var plan: [Request]
  private var rows: [(source: UInt32?, cells: [String])] = []
  /// The ECUs that responded.
  private var ecus: Set<UInt32?> = []
  /// The ECUs with test results.
  private var tested: Set<UInt32?> = []
  private var problems: [String] = []
  private var processed = 0
  /// Whether the vehicle responds to other requests.
  private let isResponding: Bool

  init(isCAN: Bool, isResponding: Bool = false) {
    (self.isCAN, self.isResponding) = (isCAN, isResponding)
    plan = [Request(bytes: [0x01, 0x01]), Request(bytes: [0x01, 0x41])] + (isCAN ? [Request(bytes: [0x06, 0x00])] : [])
  }

  var requests: [[UInt8]] { plan.map(\.bytes) }
  func target(of index: Int) -> Target? { plan[index].target }
  var isLong: Bool { true }

  mutating func process(_ answers: [ECUAnswer], _ index: Int) throws(Unreadable) {
    processed += 1
    let request = plan[index].bytes
    for (source, message) in answers.failedECUs {
      problems.append(ECUAnswer.message(source, "does not report \(spacedHex(request)): \(message)"))
    }
    for answer in answers where answer.isPositive {
      ecus.insert(answer.source)
      switch (request[0], request[1]) {
      case (0x01, let number): try addReadiness(answer, number)
      case (_, let base) where base % 0x20 == 0: addTestRequests(answer, base)
      default: try addResults(answer)
      }
    }
  }

  mutating func handleUnusableReply(to index: Int, _ reason: String) -> Bool {
    processed += 1
    problems.append("\(plan[index].target.map { "\($0.reply?.text ?? $0.text): " } ?? "")\(spacedHex(plan[index].bytes)): \(reason)")
    return true
  }

  private mutating func addReadiness(_ answer: ECUAnswer, _ number: UInt8) throws(Unreadable) {
    guard answer.bytes.count == 6 else { throw Unreadable("response length does not match SAE J1979") }
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
  private mutating func addTestRequests(_ answer: ECUAnswer, _ base: UInt8) {
    guard answer.bytes.count == 6 else { return }
    let numbers = StandardParameter.supported(answer.bytes[2...], base: base)
    let target = answer.source.flatMap { Target(respondingFrom: CANIdentifier($0)) }
    for number in numbers where number % 0x20 != 0 || base < 0xE0 && number == base + 0x20 {
      let request = Request(bytes: [0x06, number], target: target)
      if !plan.contains(request) { plan.append(request) }
    }
    tested.insert(answer.source)
  }

  private mutating func addResults(_ answer: ECUAnswer) throws(Unreadable) {
    switch TestResult.read(answer.bytes[...]) {
    case .malformed(let reason): throw Unreadable(reason)
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

  private mutating func add(_ source: UInt32?, _ cells: [String]) { rows.append((source, [ReplyReader.name(of: source)] + cells)) }

  var abortError: CommandError? {
    guard processed >= (isCAN ? 3 : 2), ecus.isEmpty, problems.isEmpty else { return nil }
    let cause = isResponding ? "" : "the ignition is off, or "
    return .refused(
      code: .noAnswer, "no ECU responds: \(cause)the vehicle has no SAE J1979 (OBD-II) monitors, like many electric cars")
  }

  var report: Report {
    var lines = problems
    let untested = ecus.subtracting(tested).sorted { $0 ?? 0 < $1 ?? 0 }.map { ReplyReader.name(of: $0) }
    if !isCAN {
      lines.append("test results (service 06) are read on CAN only")
    } else if tested.isEmpty {
      lines.append("test results (service 06) are not supported")
    } else if !untested.isEmpty {
      lines.append("test results (service 06) are not supported by \(untested.joined(separator: ", "))")
    }
    let order = [Self.lamp, Self.codes, Self.readiness, Self.test]
    let sorted = rows.enumerated().sorted { lhs, rhs in
      func rank(_ row: (offset: Int, element: (source: UInt32?, cells: [String]))) -> (UInt32, Int, Int) {
        (row.element.source ?? 0, order.firstIndex(of: row.element.cells[1]) ?? 0, row.offset)
      }
      return rank(lhs) < rank(rhs)
    }
    return Report(text: lines.isEmpty ? nil : lines.joined(separator: "\n"), columns: Self.columns, rows: sorted.map(\.element.cells))
  }
}
