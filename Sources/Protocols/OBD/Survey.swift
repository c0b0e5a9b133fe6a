// Several questions to all controllers, one after the other, that come to one report: the trouble codes, what clearing them would take
// away, the clearing itself. Who has nothing to tell says so or is silent; who would have is not passed over.

/// Questions of the emission standard and what has come of them so far.
protocol Survey: Sendable {
  /// Services and identifiers, in the order in which they are asked.
  var questions: [[UInt8]] { get }
  /// Takes what answers the question at this place; nothing where nobody answers. Throws why that cannot be used.
  mutating func take(_ answers: [SurveyAnswer], _ place: Int) throws(Unreadable)
  /// Why nothing more is asked.
  var objection: CommandError? { get }
  /// What it comes to when all is asked.
  var report: Report { get }
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
    // Services 01 and 02 repeat the parameter they are asked for.
    let echo = [question[0] + 0x40] + (question[0] <= 0x02 ? question.dropFirst().prefix(1) : [])
    let answers = messages.map { SurveyAnswer(source: $0.source, bytes: Array(bytes(of: $0))) }
      .filter { $0.bytes.starts(with: echo) || $0.refusal != nil && $0.bytes[1] == question[0] }
    if answers.isEmpty { throw Unreadable("the reply answers another request") }
    return answers
  }
}

extension [SurveyAnswer] {
  /// Those that tell something. A controller that does not know the question has nothing to tell; one that refuses it would have.
  func told() throws(Unreadable) -> [SurveyAnswer] {
    if let (_, words) = putOff.first { throw Unreadable("a controller says: \(words)") }
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
