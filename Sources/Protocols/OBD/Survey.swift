// Several questions to all controllers or to one, one after the other, that come to one report: the trouble codes, freeze frames, monitors,
// what clearing would take away, the clearing itself. Who has nothing to tell says so or is silent; who would have is not passed over.

/// Questions and what has come of them so far.
protocol Survey: Sendable {
  /// Services and identifiers, in the order in which they are asked. An answer may add more at the end.
  var questions: [[UInt8]] { get }
  /// Which ECU is asked the question at this place; nil: all that know the emission standard.
  func target(of place: Int) -> Target?
  /// Takes what answers the question at this place; nothing where nobody answers. Throws why that cannot be used.
  mutating func take(_ answers: [SurveyAnswer], _ place: Int) throws(Unreadable)
  /// The reply to the question at this place cannot be used, for this reason. False where the survey cannot go on without it.
  mutating func missed(_ place: Int, _ reason: String) -> Bool
  /// It takes so many questions that the caller hears how far it is.
  var isLong: Bool { get }
  /// Why nothing more is asked.
  var objection: CommandError? { get }
  /// What it comes to when all is asked.
  var report: Report { get }
}

extension Survey {
  func target(of place: Int) -> Target? { nil }
  mutating func missed(_ place: Int, _ reason: String) -> Bool { false }
  var isLong: Bool { false }
}

/// What one controller says to a question.
struct SurveyAnswer: Sendable, Equatable {
  /// The identifier it comes from; nil where the adapter does not show it.
  let source: UInt32?
  let bytes: [UInt8]

  /// Why it says no, ISO 14229.
  var refusal: UInt8? { bytes.first == 0x7F && bytes.count >= 3 ? bytes[2] : nil }

  /// `7E8 cleared`
  static func words(_ source: UInt32?, _ rest: String) -> String { source == nil ? rest : "\(CANReader.name(of: source)) \(rest)" }
}

extension CANReader {
  /// The messages of the last reply that answer the question, refusals as well.
  func answers(to question: [UInt8]) throws(Unreadable) -> [SurveyAnswer] {
    // These repeat what they are asked for; of several parameters of a freeze frame the first may be missing.
    let repeats = [0x01, 0x06, 0x19].contains(question[0]) || question[0] == 0x02 && question.count <= 3
    let echo = [question[0] + 0x40] + (repeats ? question.dropFirst().prefix(1) : [])
    let answers = messages.map { SurveyAnswer(source: $0.source, bytes: Array(bytes(of: $0))) }
      .filter { $0.bytes.starts(with: echo) || $0.refusal != nil && $0.bytes[1] == question[0] }
    if answers.isEmpty { throw Unreadable("response to another request") }
    return answers
  }
}

extension [SurveyAnswer] {
  /// Those that tell something. A controller that does not know the question has nothing to tell; one that refuses it would have.
  func told() throws(Unreadable) -> [SurveyAnswer] {
    if let (_, words) = putOff.first { throw Unreadable("negative response: \(words)") }
    return filter { $0.refusal == nil }
  }

  /// Who would have something to tell, and why it does not. Where the adapter shows no names, an answer that follows is taken for that of
  /// who asked for patience.
  var putOff: [(source: UInt32?, words: String)] {
    indices.compactMap { index in
      let answer = self[index]
      let others = answer.source == nil ? self[index...] : self[...]
      guard let code = answer.refusal, !others.contains(where: { $0.source == answer.source && $0.refusal == nil }) else { return nil }
      return NegativeResponse.remedy(of: code).isIgnorance ? nil : (answer.source, NegativeResponse.name(of: code))
    }
  }

  /// Somebody asks for patience whose answer is not there.
  var isPending: Bool { contains { $0.refusal == 0x78 } && putOff.contains { $0.words == NegativeResponse.name(of: 0x78) } }
}
