// Clears the trouble codes after the data that will be lost has been saved: checks again that the vehicle is stationary, sends service 04
// once, then reads the codes again. Service 04 is never repeated automatically. Source: SAE J1979 service 04 (44 is the positive response,
// 7F 04 22 means that conditions are not correct).

struct CodeClearing: MultiECUQuery {
  /// The index of service 04 among the requests.
  static let clearIndex = Motion.requests.count

  /// The ECUs that responded when the codes were read.
  let ecus: [UInt32?]
  private var motion: Motion
  /// The outcome by ECU; nil until the reply to service 04 has been processed.
  private(set) var outcomes: [(source: UInt32?, outcome: Outcome)]?
  /// The codes that remain.
  private var remaining: TroubleCodeQuery

  enum Outcome: Sendable, Equatable {
    case cleared, silent
    case refused(UInt8)

    /// A short result, and the reason if there is one.
    var message: (result: String, reason: String) {
      switch self {
      case .cleared: return ("cleared", "")
      case .silent: return ("no response", "")
      case .refused(let code):
        let name = NegativeResponse.name(of: code)
        return switch code {
        case 0x22, 0x83, 0x88: ("refused", "\(name): \(Motion.remedy)")
        case 0x78: ("refused", "\(name): completion not confirmed")
        default: ("refused", name)
        }
      }
    }
  }

  init(_ ecus: [UInt32?], _ motion: Motion, requiresResponse: Bool) {
    (self.ecus, self.motion, remaining) = (ecus, motion, TroubleCodeQuery(requiresResponse: requiresResponse))
  }

  var requests: [[UInt8]] { Motion.requests + [[0x04]] + remaining.requests }

  mutating func process(_ answers: [ECUAnswer], _ index: Int) throws(Unreadable) {
    if index < Self.clearIndex { try motion.process(answers) }
    if index == Self.clearIndex { outcomes = outcomes(of: answers) }
    if index > Self.clearIndex { remaining.process(answers, index - Self.clearIndex - 1) }
  }

  /// One outcome per ECU. Without headers, each response counts as one ECU.
  private func outcomes(of answers: [ECUAnswer]) -> [(source: UInt32?, outcome: Outcome)] {
    let cleared = answers.filter { $0.isPositive }
    // "Response pending" followed by a positive response is not a rejection.
    let refused = answers.filter { answer in answer.source == nil || !cleared.contains { $0.source == answer.source } }
    let silent = ecus.filter { source in source != nil && !answers.contains { $0.source == source } }
    let found =
      cleared.map { ($0.source, Outcome.cleared) }
      + refused.compactMap { answer in answer.negativeResponseCode.map { (answer.source, .refused($0)) } }
      + silent.map { ($0, .silent) }
    return found.sorted { $0.0 ?? 0 < $1.0 ?? 0 }
  }

  /// Whether at least one ECU has cleared its codes.
  var hasCleared: Bool { outcomes?.contains { $0.outcome == .cleared } ?? false }

  /// `7E8 cleared; 7E9 refused (conditions not correct: stop, …)`
  var message: String {
    let parts = (outcomes ?? []).map { source, outcome in
      let (result, reason) = outcome.message
      return ECUAnswer.message(source, result + (reason.isEmpty ? "" : " (\(reason))"))
    }
    return parts.isEmpty ? "no ECU responds" : parts.joined(separator: "; ")
  }

  /// Whether no ECU has confirmed the clear operation, and at least one has not responded or has reported only "response pending".
  var isOutcomeUnknown: Bool { !hasCleared && outcomes?.contains { $0.outcome == .silent || $0.outcome == .refused(0x78) } ?? false }

  var abortError: CommandError? {
    if let error = motion.clearingError { return error }
    if outcomes == nil || hasCleared { return nil }
    if isOutcomeUnknown { return .refused(code: .outcomeUnknown, "unknown whether codes were cleared (\(message)); read them again") }
    return .refused(code: .notCleared, "no trouble code was cleared: \(message)")
  }

  var report: Report { report(hasReadRemaining: true) }

  /// The report. `hasReadRemaining`: the remaining codes were read.
  func report(hasReadRemaining: Bool) -> Report {
    let cleared = (outcomes ?? []).map { [ReplyReader.name(of: $0), "clearing", $1.message.result, "", $1.message.reason] }
    let codes = remaining.entries.map { [ReplyReader.name(of: $0.source), "code", $0.code.text, $0.stateText, $0.meaning] }
    var text = "the cleared data is stored in the journal, and in the state directory as \(CodeClearingSequence.key)"
    if !hasReadRemaining || remaining.abortError != nil {
      text += "\ncannot read which codes remain; read them again"
    } else if !remaining.problems.isEmpty {
      text += "\n" + remaining.problems.joined(separator: "\n")
    } else if codes.isEmpty {
      text += "\nno trouble codes remain"
      if let message = remaining.unansweredMessage { text += "\n\(message)" }
    } else if let message = remaining.permanentMessage {
      text += "\n\(message)"
    }
    return Report(text: text, columns: ClearingPreview.columns, rows: cleared + (hasReadRemaining ? codes : []))
  }
}
