// The outcomes of a poll: values, or a failure and its consequence.

/// The reason why a poll had no values.
enum PollFailure: Sendable {
  case status(ELMStatus)
  /// A negative response with this code.
  case negative(UInt8)
  /// A response from the right ECU that violates SAE J1979.
  case malformed(String)
  case unusable(String)
}

/// The consequence of a failed poll. The strings are messages about the failure.
indirect enum PollConsequence: Sendable {
  /// Repeat the request at the next slot.
  case retry
  /// Count an unusable reply.
  case unusable(String, resynchronising: Bool)
  /// The response violates SAE J1979: count it, or replace the request if this happens repeatedly.
  case malformed(String, isRepeated: Bool)
  /// Reinitialise the adapter, which sent this status.
  case settingsLost(ELMStatus)
  /// Reinitialise the adapter: its echo is on again, so it may have restarted unnoticed.
  case echoReturned
  /// Replace the request, because another PID may be answered; `otherwise` applies if no other request is left.
  case replace(String, otherwise: PollConsequence)
  /// Try the next protocol candidate. `isFinal`: polling stops after the last one.
  case tryOther(String, isFinal: Bool)
  /// Wait for the ECU, which has reported "response pending" this many times in a row.
  case responsePending(String, times: Int)
  /// Pause polling: the vehicle does not respond.
  case pause(String)
  /// Send nothing to the adapter for some time, then reinitialise it: there is noise or interference on the bus.
  case rest(String)
  /// Stop polling until the link is opened again, because repeating the request could cause a lock-out.
  case stop(String)
}

/// The kind of reply to a poll.
enum PollResult: Sendable {
  /// The data in this range of the payload, from this ECU.
  case values(Range<Int>, from: UInt32?)
  /// The data record is not that of a Hyundai or Kia BMS.
  case foreignRecord
  /// The vehicle has answered the liveness check.
  case alive
  /// The vehicle has reported supported PIDs.
  case supportedPIDs
  case failed(PollFailure)
}

/// The result of handling a reply to a request for supported PIDs.
enum DiscoveryOutcome: Sendable {
  case failed(PollFailure)
  case done(PollConsequence)
}

extension VehiclePolling {
  /// Evaluates the reply to the fast request; `parsed` is its content.
  func evaluate(_ parsed: ReplyReader.Outcome, _ reader: ReplyReader) -> PollResult {
    switch parsed {
    case .messages where scheduler.fast.livenessCheckReason != nil:
      reader.bitmaps(base: 0).isEmpty ? .failed(.unusable("response to another request")) : .alive
    case .messages where scheduler.fast.request.isDiscovery: .supportedPIDs
    case .messages:
      scheduler.fast.evaluate(
        reader, mustBePlausible: detection.requiresPlausibility(scheduler.fast.request, isConfirmed: scheduler.isConfirmed))
    case .empty: .failed(.unusable("empty reply"))
    case .unreadable(let reason): .failed(.unusable(reason))
    case .status(let status): .failed(.status(status))
    }
  }
}

extension FastPoll {
  /// Evaluates the messages of a reply to the fast request. `mustBePlausible`: a data record must pass the plausibility check.
  func evaluate(_ reader: ReplyReader, mustBePlausible: Bool) -> PollResult {
    switch reader.answer(
      withPrefix: request.responsePrefix, parameters: request.parameters, from: request.target, previousResponder: responder)
    {
    case .message(let answer):
      let prefixLength = request.responsePrefix.count
      let data = answer.start + prefixLength..<answer.start + answer.length
      if mustBePlausible, !reader.payload.withUnsafeBufferPointer({ BMSRecord.isPlausible(UnsafeBufferPointer(rebasing: $0[data])) }) {
        return .foreignRecord
      }
      if request.isBMSRecord, answer.length < prefixLength + BMSRecord.minLength { return .failed(.unusable("response too short")) }
      if !request.parameters.isEmpty, reader.end(of: request.parameters, in: answer) == nil {
        return .failed(.malformed("response length does not match SAE J1979"))
      }
      return .values(data, from: answer.source)
    case .negative(let code): return .failed(.negative(code))
    case .nothing(let reason): return .failed(.unusable(reason))
    }
  }
}

extension PollRequest {
  /// Whether the messages of a reply contain plausible BMS data.
  func isAnsweredPlausibly(_ reader: ReplyReader) -> Bool {
    guard case .values(let data, _) = evaluate(reader) else { return false }
    return reader.payload.withUnsafeBufferPointer { BMSRecord.isPlausible(UnsafeBufferPointer(rebasing: $0[data])) }
  }
}

extension BMSRecord {
  /// The minimum length of the data in bytes; a shorter response has no values.
  fileprivate static let minLength = 14
}
