// The outcomes of a queued request.

/// The result of handling a reply.
enum RequestOutcome: Sendable {
  /// The vehicle did not answer the request, or rejected it. The failure has already been counted.
  case missed
  /// The adapter has restarted or is going to sleep.
  case settingsLost(ELMStatus)
  /// The adapter does not support STPX.
  case rejectsSTPX
  /// The reply is unusable, for this reason. `isUnreadable`: it could not be parsed into messages.
  case unusable(String, isUnreadable: Bool)
  /// The text in the response to an identification request.
  case identified(String)
  /// The response contains this many of the requested PIDs. `isSplit`: PIDs were missing repeatedly, so the request was split.
  case answered(ValueTable.Completeness, isSplit: Bool)
}

/// The kind of reply to a request.
enum RequestReply: Sendable {
  /// The data in this range of the payload, from this ECU.
  case values(Range<Int>, from: UInt32?)
  /// The strings in the response to an identification request, from this ECU.
  case identity([String], from: UInt32?)
  /// The response to an identification request cannot be read.
  case damagedIdentity
  /// A negative response with this code.
  case negative(UInt8)
  case unusable(String)
}

extension PollRequest {
  /// Evaluates the messages of a reply.
  func evaluate(_ reader: ReplyReader) -> RequestReply {
    if isIdentity, !rows.isEmpty, let (answer, source) = reader.identity(self) {
      guard case .texts(let texts) = answer else { return .damagedIdentity }
      return .identity(texts, from: source)
    }
    switch reader.answer(withPrefix: responsePrefix, parameters: parameters, from: target, previousResponder: responder) {
    case .message(let answer): return .values(answer.start + responsePrefix.count..<answer.start + answer.length, from: answer.source)
    case .negative(let code): return .negative(code)
    case .nothing(let reason): return .unusable(reason)
    }
  }

  /// The reason for the absence of its values while the vehicle responds to other requests: `7E5 does not respond to 22E011`.
  func message(for status: ELMStatus) -> String {
    let ecu = target.reply == nil ? nil : target.request?.text
    let problem = ecu.map { "\($0) does not respond to" } ?? "no ECU responds to"
    return "\(problem) \(String(decoding: hexText(request), as: UTF8.self))\(status == .noData ? "" : ": \(status.message)")"
  }
}
