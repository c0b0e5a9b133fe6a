// The report of a query: one row per message. A corrupt, ambiguous or incomplete reply is reported as an error with the raw text.

extension OBDQuery {
  private static let columns = ["ecu", "data", "meaning"]

  /// Processes the reply to the request at `index`, parsed as `outcome`. Returns the result, or nil if more requests follow.
  mutating func process(
    _ outcome: ReplyReader.Outcome, _ body: ArraySlice<UInt8>, _ reader: ReplyReader, _ scales: Scales, _ index: Int
  ) -> Result<Report, CommandError>? {
    guard case .multiECU(var query) = purpose else { return result(outcome, body, reader, scales) }
    do throws(Unreadable) {
      switch outcome {
      case .messages:
        let answers = try reader.answers(to: query.requests[index])
        let target = query.target(of: index)
        try query.process(answers.filter { target?.accepts($0.source, responder: nil) ?? true }, index)
      // No ECU has data or supports the service.
      case .status(.noData): try query.process([], index)
      // If the adapter restarted or the bus has failed, the following requests cannot be answered.
      case .status(let status)
      where ![.reinitialise, .wake, .backOff].contains(status.consequence) && query.handleUnusableReply(to: index, status.message): break
      case .unreadable(let reason) where query.handleUnusableReply(to: index, reason): break
      case .empty, .unreadable, .status: return failure(outcome, body, reader, scales)
      }
    } catch {
      guard query.handleUnusableReply(to: index, error.reason) else {
        return Self.badReply(error.reason, body)
      }
    }
    update(query)
    if let abortError = query.abortError { return .failure(abortError) }
    return index + 1 < requestStrings.count ? nil : .success(query.report)
  }

  /// The error for a reply without a usable response.
  private func failure(
    _ outcome: ReplyReader.Outcome, _ body: ArraySlice<UInt8>, _ reader: ReplyReader, _ scales: Scales
  ) -> Result<Report, CommandError> {
    switch result(outcome, body, reader, scales) {
    case .failure(let error): .failure(error)
    case .success(let report): .failure(.refused(code: .noAnswer, report.rows.first?.last ?? "the vehicle did not respond"))
    }
  }

  /// The result of a query with one request, from the text of the reply and its messages.
  private func result(
    _ outcome: ReplyReader.Outcome, _ body: ArraySlice<UInt8>, _ reader: ReplyReader, _ scales: Scales
  ) -> Result<Report, CommandError> {
    if service == nil { return adapterAnswer(body) }
    switch outcome {
    case .messages: return answers(reader, scales, body)
    case .empty: return Self.badReply("the adapter sent an empty reply", body)
    case .unreadable(let reason): return Self.badReply(reason, body)
    case .status(let status):
      switch status.consequence {
      case .discard, .resynchronise, .acknowledge: return Self.badReply(status.message, body)
      case .reinitialise, .wake: return .failure(.refused(code: .adapterRestarted, status.message))
      case .unsupported, .noResponse, .backOff, .retry, .ignore:
        return .success(Report(columns: Self.columns, rows: [["", "", "\(status.rawValue): \(status.message)"]]))
      }
    }
  }

  private func answers(_ reader: ReplyReader, _ scales: Scales, _ body: ArraySlice<UInt8>) -> Result<Report, CommandError> {
    let rows = reader.messages.compactMap { message -> [String]? in
      let bytes = reader.bytes(of: message)
      guard isAnswered(by: bytes) else { return nil }
      return [ReplyReader.name(of: message.source), spacedHex(bytes), ResponseDescription.of(bytes, scales, from: message.source)]
    }
    if rows.isEmpty { return Self.badReply("response to another request", body) }
    return .success(Report(columns: Self.columns, rows: rows))
  }

  private func adapterAnswer(_ body: ArraySlice<UInt8>) -> Result<Report, CommandError> {
    let lines = lines(of: body)
    if lines.isEmpty { return Self.badReply("the adapter sent an empty reply", body) }
    if lines.contains(where: { ELMLine($0) == .status(.stopped) }) { return Self.badReply(ELMStatus.stopped.message, body) }
    return .success(
      Report(
        columns: Self.columns,
        rows: lines.prefix(64).map { ["", "", $0 == [UInt8(ascii: "?")] ? ELMStatus.unknownCommandMessage : printable($0)] }))
  }

  private static func badReply(_ reason: String, _ body: ArraySlice<UInt8>) -> Result<Report, CommandError> {
    .failure(.refused(code: .badReply, "unusable reply (\(reason))\(body.isEmpty ? "" : ": \(printable(body))"); try again"))
  }
}

extension ELMStatus {
  fileprivate static let unknownCommandMessage = "?: the adapter does not support this command"
}
