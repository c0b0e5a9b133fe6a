// Why a poll brought no values, and what that calls for.

/// The reason why a poll brought no values.
enum PollFailure: Sendable {
  case status(ELMStatus)
  case negative(UInt8)
  /// A response of the right ECU that violates SAE J1979.
  case misfit(String)
  case unusable(String)
}

/// What a failed poll calls for.
indirect enum PollConsequence: Sendable {
  /// It is repeated at the next slot.
  case retry
  case unusable(String, resynchronising: Bool)
  /// The response violates SAE J1979, repeatedly or now.
  case misfit(String, isRepeated: Bool)
  case settingsLost(ELMStatus)
  /// The echo of the adapter is on again: it may have restarted unnoticed.
  case echoReturned
  /// Another PID may be answered.
  case replace(String, otherwise: PollConsequence)
  /// Another protocol candidate may be answered; `isFinal`: after the last one polling stops.
  case tryOther(String, isFinal: Bool)
  /// The ECU has reported that the response follows, so many times in a row.
  case responsePending(String, times: Int)
  case pause(String)
  /// The bus is disturbed: the adapter rests.
  case rest(String)
  /// Repeating the request could cause a lock-out.
  case stop(String)
}

/// What the reply to a poll is.
enum PollResult: Sendable {
  /// The data in this range of the payload, from this ECU.
  case values(Range<Int>, from: UInt32?)
  /// The record at this address is that of another maker.
  case foreignRecord
  /// The vehicle responds to the request that all ECUs support.
  case alive
  case supportedPIDs
  case failed(PollFailure)
}

/// What the reply to a request for supported PIDs calls for.
enum DiscoveryOutcome: Sendable {
  case failed(PollFailure)
  case done(PollConsequence)
}

extension VehiclePolling {
  /// Evaluates the reply to the fast request, parsed as `parsed`.
  func evaluate(_ parsed: CANReader.Outcome, _ reader: CANReader) -> PollResult {
    switch parsed {
    case .messages where scheduler.fast.doubt != nil:
      reader.bitmaps(base: 0).isEmpty ? .failed(.unusable("response to another request")) : .alive
    case .messages where scheduler.fast.request.isDiscovery: .supportedPIDs
    case .messages:
      scheduler.fast.evaluate(reader, isDoubtful: detection.doubts(scheduler.fast.request, isSettled: scheduler.isSettled))
    case .empty: .failed(.unusable("empty reply"))
    case .unreadable(let reason): .failed(.unusable(reason))
    case .status(let status): .failed(.status(status))
    }
  }
}

extension FastPoll {
  /// Evaluates the reply to the fast request, parsed as `outcome`. `isDoubtful`: a data record must pass the plausibility check.
  func evaluate(_ reader: CANReader, isDoubtful: Bool) -> PollResult {
    switch reader.answer(echo: request.echo, parameters: request.parameters, from: request.target, before: responder) {
    case .message(let answer):
      let head = request.echo.count
      let data = answer.start + head..<answer.start + answer.length
      if isDoubtful, !reader.payload.withUnsafeBufferPointer({ BMSRecord.isPlausible(UnsafeBufferPointer(rebasing: $0[data])) }) {
        return .foreignRecord
      }
      if request.parameters.isEmpty, answer.length < head + BMSRecord.minLength { return .failed(.unusable("response too short")) }
      if !request.parameters.isEmpty, reader.end(of: request.parameters, in: answer) == nil {
        return .failed(.misfit("response length differs from SAE J1979"))
      }
      return .values(data, from: answer.source)
    case .refusal(let code): return .failed(.negative(code))
    case .nothing(let reason): return .failed(.unusable(reason))
    }
  }
}

extension BMSRecord {
  /// Shorter responses hold no values.
  fileprivate static let minLength = 14
}
