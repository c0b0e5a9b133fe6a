// A multi-ECU query combines several requests, to all ECUs or to individual ones, into one report: trouble codes, freeze frames, monitors,
// clearing. An ECU that does not support a request need not respond. An ECU that supports the request but cannot answer it is reported.

/// The requests and the results so far.
protocol MultiECUQuery: Sendable {
  /// The requests in order, each with service and identifiers. A response may append more.
  var requests: [[UInt8]] { get }
  /// The target of the request at this index; nil addresses all ECUs that support SAE J1979 (functional addressing).
  func target(of index: Int) -> Target?
  /// Processes the responses to the request at this index; empty if there are none. Throws if they are unusable.
  mutating func process(_ answers: [ECUAnswer], _ index: Int) throws(Unreadable)
  /// Handles an unusable reply to the request at this index. Returns false if the query cannot continue without a usable reply.
  mutating func handleUnusableReply(to index: Int, _ reason: String) -> Bool
  /// Whether the query has so many requests that the client receives progress reports.
  var isLong: Bool { get }
  /// The error that ends the query, before or after its last request, or nil if the query continues.
  var abortError: CommandError? { get }
  /// The final report.
  var report: Report { get }
}

extension MultiECUQuery {
  func target(of index: Int) -> Target? { nil }
  mutating func handleUnusableReply(to index: Int, _ reason: String) -> Bool { false }
  var isLong: Bool { false }
}

/// The response of one ECU.
struct ECUAnswer: Sendable, Equatable {
  /// The source identifier; nil if the adapter does not show it.
  let source: UInt32?
  let bytes: [UInt8]

  /// The code of a negative response (ISO 14229); nil for a positive response.
  var negativeResponseCode: UInt8? { bytes.first == 0x7F && bytes.count >= 3 ? bytes[2] : nil }
  var isPositive: Bool { negativeResponseCode == nil }

  /// The text, preceded by the name of the ECU: `7E8 cleared`.
  static func message(_ source: UInt32?, _ text: String) -> String { source == nil ? text : "\(ReplyReader.name(of: source)) \(text)" }
}

extension ReplyReader {
  /// The messages of the last reply that answer the request, negative responses included.
  func answers(to request: [UInt8]) throws(Unreadable) -> [ECUAnswer] {
    // Responses to these services repeat the identifier. A response to a freeze frame request for several PIDs may lack the first PID.
    let repeatsIdentifier = [0x01, 0x06, 0x19].contains(request[0]) || request[0] == 0x02 && request.count <= 3
    let prefix = [request[0] + 0x40] + (repeatsIdentifier ? request.dropFirst().prefix(1) : [])
    let answers = messages.map { ECUAnswer(source: $0.source, bytes: Array(bytes(of: $0))) }
      .filter { $0.bytes.starts(with: prefix) || $0.negativeResponseCode != nil && $0.bytes[1] == request[0] }
    if answers.isEmpty { throw Unreadable("response to another request") }
    return answers
  }

  /// Whether a response was still pending when the adapter's timeout ended the reply.
  var isPending: Bool { messages.map { ECUAnswer(source: $0.source, bytes: Array(bytes(of: $0))) }.isPending }
}

extension [ECUAnswer] {
  /// The positive responses. Throws if an ECU supports the request but rejects it.
  func positiveResponses() throws(Unreadable) -> [ECUAnswer] {
    if let (_, message) = failedECUs.first { throw Unreadable("negative response: \(message)") }
    return filter(\.isPositive)
  }

  /// The ECUs that support the request but could not answer it, with the reason. Without headers, a later positive response is attributed
  /// to the ECU that reported "response pending".
  var failedECUs: [(source: UInt32?, message: String)] {
    indices.compactMap { index in
      let answer = self[index]
      let others = answer.source == nil ? self[index...] : self[...]
      guard let code = answer.negativeResponseCode, !others.contains(where: { $0.source == answer.source && $0.isPositive }) else {
        return nil
      }
      return NegativeResponse.handling(of: code).meansUnsupported ? nil : (answer.source, NegativeResponse.name(of: code))
    }
  }

  /// Whether an ECU has reported "response pending" but no response followed.
  var isPending: Bool {
    contains { $0.negativeResponseCode == 0x78 } && failedECUs.contains { $0.message == NegativeResponse.name(of: 0x78) }
  }
}
