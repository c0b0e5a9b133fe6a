// Trouble codes over UDS (ISO 14229-1, service 19 02), read from each ECU separately: the known ECUs, the eight addresses of ISO 15765-4,
// and the addresses that the client gives. ECUs without the service, and known ECUs that do not respond, are listed.

struct UDSTroubleCodeQuery: MultiECUQuery {
  /// The ECUs, in the order of the requests.
  let ecus: [Target]
  /// The ECUs that are known to exist. They are reported if they do not respond.
  let known: Set<Target>

  private var found: [(source: String, code: UDSTroubleCode)] = []
  private var unsupported: [String] = []
  private var silent: [String] = []
  /// The number of ECUs that have reported their codes.
  private var reportedECUs = 0
  /// Messages about codes that could not be read.
  private var problems: [String] = []
  private var processed = 0
  /// Whether the vehicle responds to other requests.
  private let isResponding: Bool

  init(_ ecus: [Target], known: Set<Target>, isResponding: Bool = false) {
    (self.ecus, self.known, self.isResponding) = (ecus, known, isResponding)
  }

  var requests: [[UInt8]] { ecus.map { _ in UDSTroubleCode.request } }
  func target(of index: Int) -> Target? { ecus[index] }
  var isLong: Bool { true }

  mutating func process(_ answers: [ECUAnswer], _ index: Int) throws(Unreadable) {
    let name = name(of: index)
    processed = index + 1
    guard !answers.isEmpty else {
      if known.contains(ecus[index]) { silent.append(name) }
      return
    }
    if let (_, message) = answers.failedECUs.first { return problems.append("\(name) does not report its codes: \(message)") }
    guard let answer = answers.first(where: { $0.isPositive }) else { return unsupported.append(name) }
    switch UDSTroubleCode.read(answer.bytes) {
    case .malformed(let reason): problems.append("\(name) does not report its codes: \(reason)")
    case .codes(let codes):
      reportedECUs += 1
      found += codes.map { (name, $0) }
    }
  }

  mutating func handleUnusableReply(to index: Int, _ reason: String) -> Bool {
    processed = index + 1
    problems.append("\(name(of: index)) does not report its codes: \(reason)")
    return true
  }

  /// The response identifier, as in the other reports.
  private func name(of index: Int) -> String { ecus[index].reply?.text ?? ecus[index].text }

  var abortError: CommandError? {
    guard processed == ecus.count, reportedECUs == 0, unsupported.isEmpty, problems.isEmpty else { return nil }
    let remedy = isResponding ? "give the identifiers of other ECUs" : "switch the ignition on"
    return .refused(code: .noAnswer, "no ECU responds to UDS (service 19); \(remedy)")
  }

  var report: Report {
    var lines = problems
    if found.isEmpty, reportedECUs > 0 {
      lines.append("no trouble codes over UDS in \(reportedECUs) ECU\(reportedECUs == 1 ? "" : "s")")
    }
    if !unsupported.isEmpty {
      lines.append("trouble codes over UDS (service 19) are not supported by \(unsupported.joined(separator: ", "))")
    }
    if !silent.isEmpty { lines.append("no response to UDS from \(silent.joined(separator: ", "))") }
    let rows = found.map { [$0.source, $0.code.text, $0.code.states.joined(separator: ", "), $0.code.meaning] }
    let columns = rows.isEmpty ? [] : TroubleCodeQuery.columns
    return Report(text: lines.isEmpty ? nil : lines.joined(separator: "\n"), columns: columns, rows: rows)
  }
}

extension UDSTroubleCodeQuery {
  static let argument = "ecus"
  private static let maxECUs = 64

  /// Queries the ECUs of the vehicle, the addresses reserved by ISO 15765-4, the ECUs of the polled requests (`fast`: the ECU of the fast
  /// request), and the ECUs in the arguments.
  init(
    _ arguments: [String: Value], on bus: OBDProtocol, _ ecus: [ECUDiscovery.ECU], polled: [PollRequest], fast: Target, isResponding: Bool
  ) throws(CommandError) {
    guard bus.isCAN else {
      throw .refused(
        code: .noCAN, "trouble codes over UDS need a CAN bus; the vehicle's protocol is \(bus.name() ?? "not known yet")")
    }
    var known: Set<Target> = []
    for word in (arguments[Self.argument]?.text ?? "").split(whereSeparator: { $0 == " " || $0 == "," }) {
      guard let identifier = CANIdentifier(word) else {
        throw .invalid(
          argument: Self.argument,
          "\"\(visible(String(word), limit: 20))\" is not a CAN identifier; write 3 or 8 hex digits, as in 7B0")
      }
      known.insert(Target(identifier))
    }
    known.formUnion(ecus.compactMap { Target(respondingFrom: CANIdentifier($0.identifier)) })
    known.formUnion(polled.filter { $0.support == .answered }.map(\.target))
    known = known.filter { $0.reply != nil }
    var all = known.union(polled.map(\.target))
    all.insert(fast)
    if !bus.is29Bit { all.formUnion((UInt32(0x7E0)...0x7E7).map { Target(CANIdentifier($0)) }) }
    all = all.filter { $0.reply != nil }
    guard all.count <= Self.maxECUs else {
      throw .invalid(argument: Self.argument, "more than \(Self.maxECUs) ECUs; give fewer at a time")
    }
    // An ECU with several request identifiers is queried once.
    var queriedIdentifiers: Set<CANIdentifier?> = []
    let sorted = all.sorted {
      ($0.request?.number ?? 0, known.contains($0) ? 0 : 1) < ($1.request?.number ?? 0, known.contains($1) ? 0 : 1)
    }
    let queried = sorted.filter { queriedIdentifiers.insert($0.request).inserted }
    guard !queried.isEmpty else {
      throw .refused(
        code: .noECU,
        "no ECU of this vehicle is known yet; give CAN identifiers, such as 18DA10F1, or try again once the vehicle responds")
    }
    self.init(queried, known: known, isResponding: isResponding)
  }
}
