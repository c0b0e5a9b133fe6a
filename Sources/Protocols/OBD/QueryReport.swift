// What a query's reply tells a person: one row a message. Broken or ambiguous replies are an error with the raw text;
// half an answer is never shown as a whole one.

extension OBDQuery {
  private static let columns = ["ecu", "data", "meaning"]

  /// Takes the reply to one of the questions that stands in the dialogue: the result, or nil while more are to be asked.
  mutating func take(_ dialogue: ELMDialogue, _ reader: inout CANReader, _ place: Int) -> Result<Report, CommandError>? {
    guard case .survey(var survey) = purpose else { return result(dialogue, &reader) }
    do throws(Unreadable) {
      switch reader.read(dialogue.reply, from: dialogue.body) {
      case .messages: try survey.take(reader.answers(to: survey.questions[place]), place)
      // Nobody has anything to tell, or knows the service.
      case .status(.noData): try survey.take([], place)
      case .empty, .unreadable, .status: return failure(dialogue, &reader)
      }
    } catch {
      return Self.broken(error.reason, dialogue.reply[dialogue.body...])
    }
    purpose = .survey(survey)
    if let objection = survey.objection { return .failure(objection) }
    return place + 1 < texts.count ? nil : .success(survey.report)
  }

  /// A reply without an answer: why there is none.
  private func failure(_ dialogue: ELMDialogue, _ reader: inout CANReader) -> Result<Report, CommandError> {
    switch result(dialogue, &reader) {
    case .failure(let error): .failure(error)
    case .success(let report): .failure(.refused(code: "no-answer", report.rows.first?.last ?? "the vehicle did not answer"))
    }
  }

  /// The result of the question, from the reply that stands in the dialogue.
  private func result(_ dialogue: ELMDialogue, _ reader: inout CANReader) -> Result<Report, CommandError> {
    let body = dialogue.reply[dialogue.body...]
    if service == nil { return adapterAnswer(body) }
    switch reader.read(dialogue.reply, from: dialogue.body) {
    case .messages: return answers(reader, body)
    case .empty: return Self.broken("the adapter answered nothing", body)
    case .unreadable(let reason): return Self.broken(reason, body)
    case .status(let status):
      switch status.demand {
      case .discard, .resynchronise, .acknowledge: return Self.broken(status.words, body)
      case .setUpAgain, .wake: return .failure(.refused(code: "adapter-restarted", status.words))
      case .refuse, .wait, .backOff, .retry, .ignore:
        return .success(Report(columns: Self.columns, rows: [["", "", "\(status.rawValue): \(status.words)"]]))
      }
    }
  }

  private func answers(_ reader: CANReader, _ body: ArraySlice<UInt8>) -> Result<Report, CommandError> {
    let rows = reader.messages.compactMap { message -> [String]? in
      let bytes = reader.bytes(of: message)
      guard isAnswered(by: bytes) else { return nil }
      return [CANReader.name(of: message.source), spacedHex(bytes), OBDMeaning.of(bytes)]
    }
    if rows.isEmpty { return Self.broken("the reply answers another request", body) }
    return .success(Report(columns: Self.columns, rows: rows))
  }

  private func adapterAnswer(_ body: ArraySlice<UInt8>) -> Result<Report, CommandError> {
    let lines = lines(of: body)
    if lines.isEmpty { return Self.broken("the adapter answered nothing", body) }
    if lines.contains(where: { ELMLine($0) == .status(.stopped) }) { return Self.broken(ELMStatus.stopped.words, body) }
    return .success(
      Report(
        columns: Self.columns,
        rows: lines.prefix(64).map { ["", "", $0 == [UInt8(ascii: "?")] ? ELMStatus.unknownCommandWords : printable($0)] }))
  }

  private static func broken(_ reason: String, _ body: ArraySlice<UInt8>) -> Result<Report, CommandError> {
    .failure(.refused(code: "bad-reply", "the reply cannot be used (\(reason))\(body.isEmpty ? "" : ": \(printable(body))"); ask again"))
  }
}

extension ELMStatus {
  fileprivate static let unknownCommandWords = "?: the adapter does not know this command"
}
