// The trouble codes of a vehicle by ECU: stored, pending and permanent codes. Each code is listed once, with its states. On CAN, an awake
// ECU responds even if it has no codes, so it is an error if no service is answered, and a service that an ECU does not answer is reported.
// On pre-CAN protocols an ECU without codes may not respond; if none reports stored codes, PID 01 shows whether an ECU responds at all, and
// how many codes it has. Source: SAE J1979, services 01 (PID 01), 03, 07 and 0A.

struct TroubleCodeQuery: MultiECUQuery {
  /// The requested services, in this order.
  static let services: [UInt8] = [0x03, 0x07, 0x0A]
  static let permanent = "permanent"
  private static let states = ["stored", "pending", permanent]
  static let columns = ["ecu", "code", "state", "meaning"]

  struct Entry: Sendable {
    let source: UInt32?
    let code: TroubleCode
    fileprivate(set) var states: [String]

    var stateText: String { states.joined(separator: ", ") }
    var meaning: String { code.meaning ?? "" }
  }

  private var found: [Entry] = []
  /// Messages about codes that could not be read.
  private(set) var problems: [String] = []
  /// Whether at least one ECU must respond. True only on CAN, where an ECU without codes reports that it has none; on pre-CAN protocols,
  /// such an ECU may not respond.
  private let requiresResponse: Bool
  /// Whether the vehicle responds to other requests.
  private let isResponding: Bool
  /// The ECUs that have answered the service for a state.
  private var respondents = [Set<UInt32?>](repeating: [], count: states.count)
  /// Whether any ECU has responded, other than that it does not support a service.
  private var isAnswered = false
  private var processed = 0
  /// Whether PID 01 is requested, because no ECU has answered the request for stored codes.
  private var requestsStatus = false

  init(requiresResponse: Bool = false, isResponding: Bool = false) {
    (self.requiresResponse, self.isResponding) = (requiresResponse, isResponding)
  }

  /// The codes, sorted by ECU, then by code.
  var entries: [Entry] { found.sorted { ($0.source ?? 0, $0.code) < ($1.source ?? 0, $1.code) } }

  /// The permanent codes, which clearing does not erase; nil if there are none.
  var permanentMessage: String? {
    let codes = entries.filter { $0.states.contains(Self.permanent) }.map { ECUAnswer.message($0.source, $0.code.text) }
    return codes.isEmpty ? nil : "permanent codes remain until the vehicle itself verifies the repair: \(codes.joined(separator: ", "))"
  }

  var requests: [[UInt8]] { Self.services.map { [$0] } + (requestsStatus ? [[0x01, 0x01]] : []) }
  var abortError: CommandError? {
    guard processed == requests.count, !isAnswered else { return nil }
    guard isResponding, requiresResponse else { return .refused(code: .noAnswer, "no ECU responds; switch the ignition on") }
    return .refused(
      code: .noAnswer,
      "the vehicle reports no trouble codes of SAE J1979 (OBD-II), like many electric cars; read its codes over UDS: vehiclectl dtc")
  }

  mutating func process(_ answers: [ECUAnswer], _ index: Int) {
    processed += 1
    if answers.contains(where: \.isPositive) || !answers.failedECUs.isEmpty { isAnswered = true }
    guard Self.states.indices.contains(index) else { return processStatus(answers) }
    respondents[index].formUnion(answers.map(\.source))
    requestsStatus = processed == Self.services.count && !requiresResponse && respondents[0].isEmpty
    for (source, message) in answers.failedECUs { addProblem(source, message, index) }
    for answer in answers where answer.isPositive {
      switch TroubleCode.read(answer.bytes[...], onCAN: requiresResponse) {
      case .malformed(let reason): addProblem(answer.source, reason, index)
      case .codes(let codes): for code in codes { add(code, Self.states[index], from: answer.source) }
      }
    }
  }

  /// Handles the responses to PID 01: the lower bits of its first byte are the number of stored codes.
  private mutating func processStatus(_ answers: [ECUAnswer]) {
    for answer in answers {
      if let count = Self.storedCount(answer), count > 0 { addProblem(answer.source, "it has \(count)", 0) }
    }
  }

  /// The number of stored codes in a response to PID 01.
  static func storedCount(_ answer: ECUAnswer) -> Int? {
    answer.isPositive && answer.bytes.count > 2 ? Int(answer.bytes[2] & 0x7F) : nil
  }

  /// Whether an ECU has answered the request for its stored codes.
  func hasReportedStoredCodes(_ ecu: UInt32?) -> Bool { respondents[0].contains(ecu) }

  private mutating func addProblem(_ source: UInt32?, _ reason: String, _ index: Int) {
    problems.append(ECUAnswer.message(source, "does not report its \(Self.states[index]) codes: \(reason)"))
  }

  private mutating func add(_ code: TroubleCode, _ state: String, from source: UInt32?) {
    if let index = found.firstIndex(where: { $0.source == source && $0.code == code }) {
      if !found[index].states.contains(state) { found[index].states.append(state) }
    } else {
      found.append(Entry(source: source, code: code, states: [state]))
    }
  }

  /// The services that no ECU, or not every ECU, has answered; nil if each has, or an ECU without codes need not respond. Many ECUs are older
  /// than permanent codes.
  var unansweredMessage: String? {
    guard requiresResponse else { return nil }
    let unanswered = Self.states.indices.filter { respondents[$0].isEmpty }.map { Self.states[$0] }
    var lines: [String] = []
    if !unanswered.isEmpty { lines.append("no ECU responds to the request for \(unanswered.joined(separator: " and ")) codes") }
    let ecus = respondents.reduce(into: Set()) { $0.formUnion($1) }.sorted { $0 ?? 0 < $1 ?? 0 }
    for index in Self.states.indices.dropLast() where !respondents[index].isEmpty {
      for ecu in ecus where !respondents[index].contains(ecu) {
        lines.append(ECUAnswer.message(ecu, "does not respond to the request for \(Self.states[index]) codes"))
      }
    }
    return lines.isEmpty ? nil : lines.joined(separator: "\n")
  }

  var report: Report {
    let rows = entries.map { [ReplyReader.name(of: $0.source), $0.code.text, $0.stateText, $0.meaning] }
    let problems = problems.isEmpty ? nil : problems.joined(separator: "\n") + "\nread the codes again"
    if problems != nil || !rows.isEmpty {
      let lines = [problems, unansweredMessage].compactMap(\.self)
      return Report(text: lines.isEmpty ? nil : lines.joined(separator: "\n"), columns: rows.isEmpty ? [] : Self.columns, rows: rows)
    }
    guard let unansweredMessage else { return Report(text: "no trouble codes: none stored, pending or permanent") }
    let states = Self.states.indices.filter { !respondents[$0].isEmpty }.map { Self.states[$0] }
    return Report(text: "no trouble codes: none \(states.joined(separator: " or "))\n\(unansweredMessage)")
  }
}
