// A multi-ECU query: several requests to all ECUs or to one that give one report: trouble codes, freeze frames, monitors, clearing. An ECU
// that does not support a request may not respond; one that cannot answer is reported.

/// The requests and the results so far.
protocol MultiECUQuery: Sendable {
  /// Services and identifiers in order. A response may append more.
  var questions: [[UInt8]] { get }
  /// The ECU of a request; nil: all with SAE J1979.
  func target(of place: Int) -> Target?
  /// Takes the responses to a request, or none. Throws if they cannot be used.
  mutating func take(_ answers: [ECUAnswer], _ place: Int) throws(Unreadable)
  /// Handles an unusable reply. Returns false if the query cannot continue without it.
  mutating func missed(_ place: Int, _ reason: String) -> Bool
  /// It has so many requests that the caller gets progress reports.
  var isLong: Bool { get }
  /// The error that ends the query early.
  var objection: CommandError? { get }
  /// The final report.
  var report: Report { get }
}

extension MultiECUQuery {
  func target(of place: Int) -> Target? { nil }
  mutating func missed(_ place: Int, _ reason: String) -> Bool { false }
  var isLong: Bool { false }
}

/// The response of one ECU.
struct ECUAnswer: Sendable, Equatable {
  /// The source identifier; nil if the adapter does not show it.
  let source: UInt32?
  let bytes: [UInt8]

  /// The negative response code, ISO 14229.
  var refusal: UInt8? { bytes.first == 0x7F && bytes.count >= 3 ? bytes[2] : nil }

  /// `7E8 cleared`
  static func message(_ source: UInt32?, _ rest: String) -> String { source == nil ? rest : "\(CANReader.name(of: source)) \(rest)" }
}

extension CANReader {
  /// The messages of the last reply that answer the request, negative responses included.
  func answers(to question: [UInt8]) throws(Unreadable) -> [ECUAnswer] {
    // These repeat the identifier; of several PIDs of a freeze frame the first may be missing.
    let repeats = [0x01, 0x06, 0x19].contains(question[0]) || question[0] == 0x02 && question.count <= 3
    let echo = [question[0] + 0x40] + (repeats ? question.dropFirst().prefix(1) : [])
    let answers = messages.map { ECUAnswer(source: $0.source, bytes: Array(bytes(of: $0))) }
      .filter { $0.bytes.starts(with: echo) || $0.refusal != nil && $0.bytes[1] == question[0] }
    if answers.isEmpty { throw Unreadable("response to another request") }
    return answers
  }

  /// A response is pending beyond the adapter's timeout.
  var isPending: Bool { messages.map { ECUAnswer(source: $0.source, bytes: Array(bytes(of: $0))) }.isPending }
}

extension [ECUAnswer] {
  /// The positive responses. Throws if an ECU supports the request but rejects it.
  func told() throws(Unreadable) -> [ECUAnswer] {
    if let (_, message) = putOff.first { throw Unreadable("negative response: \(message)") }
    return filter { $0.refusal == nil }
  }

  /// ECUs that support the request but could not answer, with the reason. Without headers, a later response counts as the one that was
  /// pending.
  var putOff: [(source: UInt32?, message: String)] {
    indices.compactMap { index in
      let answer = self[index]
      let others = answer.source == nil ? self[index...] : self[...]
      guard let code = answer.refusal, !others.contains(where: { $0.source == answer.source && $0.refusal == nil }) else { return nil }
      return NegativeResponse.remedy(of: code).isIgnorance ? nil : (answer.source, NegativeResponse.name(of: code))
    }
  }

  /// A response is pending and has not come.
  var isPending: Bool { contains { $0.refusal == 0x78 } && putOff.contains { $0.message == NegativeResponse.name(of: 0x78) } }
}
