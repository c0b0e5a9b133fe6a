// Reads the data that clearing would erase: codes, freeze frames and readiness monitors. The last requests check whether the vehicle moves
// or its engine runs. If so, the preview fails, so that users do not confirm a clear operation that would then be rejected. The preview of
// a confirmed clear operation also fails if an ECU does not respond, or has stored codes that it does not report. Source: SAE J1979 service
// 04, which resets everything except permanent codes.

struct ClearingPreview: MultiECUQuery {
  static let columns = ["ecu", "what", "value", "state", "meaning"]

  /// Whether the client has confirmed the clear operation.
  let isConfirmed: Bool
  private(set) var codes = TroubleCodeQuery()
  private(set) var freezeFrames: [(source: UInt32?, code: TroubleCode)] = []
  /// The complete readiness monitors.
  private(set) var monitors: [(source: UInt32?, name: String)] = []
  /// The numbers of stored codes.
  private var storedCounts: [UInt32?: Int] = [:]
  private(set) var motion: Motion
  /// The ECUs that responded.
  private(set) var ecus: [UInt32?] = []
  private var isComplete = false
  /// The ECUs known from detection.
  private let knownECUs: [UInt32]
  /// Whether the vehicle responds to other requests.
  private let isResponding: Bool

  init(isConfirmed: Bool, _ motion: Motion = Motion(), knownECUs: [UInt32] = [], isResponding: Bool = false) {
    (self.isConfirmed, self.motion, self.knownECUs, self.isResponding) = (isConfirmed, motion, knownECUs, isResponding)
  }

  var requests: [[UInt8]] { TroubleCodeQuery.services.map { [$0] } + [FreezeFrame.request(0x02), [0x01, 0x01]] + Motion.requests }

  mutating func process(_ answers: [ECUAnswer], _ index: Int) throws(Unreadable) {
    for answer in answers where !ecus.contains(answer.source) { ecus.append(answer.source) }
    ecus.sort { $0 ?? 0 < $1 ?? 0 }
    switch requests[index].prefix(2) {
    case [0x02, 0x02]: try addFrames(answers)
    case [0x01, 0x01]: try addMonitors(answers)
    case let request where request.count == 1: codes.process(answers, index)
    default: try motion.process(answers)
    }
    isComplete = index == requests.count - 1
  }

  private mutating func addFrames(_ answers: [ECUAnswer]) throws(Unreadable) {
    for answer in try answers.positiveResponses() {
      var frame = FreezeFrame()
      if let problem = frame.add(answer.bytes[...]) { throw Unreadable(problem) }
      if let code = frame.code { freezeFrames.append((answer.source, code)) }
    }
  }

  private mutating func addMonitors(_ answers: [ECUAnswer]) throws(Unreadable) {
    for answer in try answers.positiveResponses() {
      storedCounts[answer.source] = TroubleCodeQuery.storedCount(answer)
      let problem = StandardParameter.split(answer.bytes[...]) { number, data in
        guard number == 0x01 else { return }
        let complete = answer.bytes[data].withUnsafeBufferPointer { Readiness.monitors($0).filter(\.isComplete).map(\.name) }
        monitors += complete.map { (answer.source, $0) }
      }
      if let problem { throw Unreadable(problem) }
    }
  }

  /// The stored codes that no response contains; nil if there are none.
  private var unreadMessage: String? {
    let unread = ecus.compactMap { ecu -> String? in
      guard let count = storedCounts[ecu], count > 0, !codes.hasReportedStoredCodes(ecu) else { return nil }
      return ECUAnswer.message(ecu, "does not report its stored codes: it has \(count)")
    }
    return unread.isEmpty ? nil : unread.joined(separator: "\n")
  }

  var abortError: CommandError? {
    if isComplete, ecus.isEmpty {
      guard isResponding else { return .refused(code: .noAnswer, "no ECU responds; switch the ignition on") }
      return .refused(
        code: .noAnswer,
        "nothing to clear: no ECU responds to SAE J1979 (OBD-II), as in many electric cars, and codes over UDS cannot be cleared")
    }
    if let error = motion.clearingError { return error }
    guard isConfirmed else { return nil }
    if let problem = codes.problems.first ?? (isComplete ? unreadMessage : nil) {
      return .refused(code: .badReply, "nothing cleared: cannot read everything that would be lost: \(problem); try again")
    }
    let silent = knownECUs.filter { !ecus.contains($0) }.map { ReplyReader.name(of: $0) }
    if isComplete, !silent.isEmpty, !ecus.contains(nil) {
      return .refused(
        code: .noAnswer, "no response from \(silent.joined(separator: ", ")): codes would be lost unread; try again")
    }
    return nil
  }

  var report: Report {
    let erasable = codes.entries.filter { $0.states != [TroubleCodeQuery.permanent] }
    var rows = erasable.map { [ReplyReader.name(of: $0.source), "code", $0.code.text, $0.stateText, $0.meaning] }
    rows += freezeFrames.map { [ReplyReader.name(of: $0.source), "freeze frame", $0.code.text, "", "values when this code was stored"] }
    rows += monitors.map { [ReplyReader.name(of: $0.source), "readiness monitor", $0.name, "complete", ""] }
    var text = "also lost: test results, counters since the last clearing, and adaptation values of the ECUs"
    if !monitors.isEmpty { text += "\nreadiness monitors take days of driving to complete again; an emissions inspection requires them" }
    if let message = codes.permanentMessage { text += "\n\(message)" }
    for problem in codes.problems + [unreadMessage].compactMap(\.self) { text += "\n\(problem)" }
    text += "\n" + (motion.isKnown ? "the vehicle is stationary: \(motion.message)" : Self.unknownMessage)
    return Report(text: text, columns: rows.isEmpty ? [] : Self.columns, rows: rows)
  }

  private static let unknownMessage = "road speed and engine speed are unknown; make sure that the vehicle is stationary and its engine off"

  /// `7E8 P0133 (stored), P0420 (stored, permanent), freeze frame of P0133; 7E9 P0715 (stored)`
  var message: String {
    let parts = ecus.map { source in
      let items =
        codes.entries.filter { $0.source == source }.map { "\($0.code.text) (\($0.stateText))" }
        + freezeFrames.filter { $0.source == source }.map { "freeze frame of \($0.code.text)" }
      return ECUAnswer.message(source, items.isEmpty ? "no code" : items.joined(separator: ", "))
    }
    return parts.joined(separator: "; ")
  }
}
