// Counts the failures of the fast request (FastPoll.swift) since its last response, and decides the consequence of each failure.

struct PollFailureCounters: Sendable {
  /// The number of replaced requests after which the whole vehicle is considered silent.
  private static let maxReplacements = 6

  /// Whether the vehicle has answered the fast request on this connection.
  private(set) var isConfirmed = false
  /// Consecutive responses that lack some of the requested PIDs.
  private var partialResponses = 0
  private var missingResponses = 0
  private var busErrors = 0
  /// Negative responses "busy" and "response pending".
  private var busyResponses = 0
  /// Replies that were damaged or interrupted.
  private var damagedReplies = 0
  /// Responses of wrong length.
  private var malformedResponses = 0
  /// Negative responses to PIDs, or of a vehicle that has answered before.
  private var negativeResponses = 0
  /// The number of fast requests that were replaced by the next one.
  private var replacements = 0

  /// Whether the fast request may be replaced once more.
  var canReplace: Bool { replacements < Self.maxReplacements }

  /// Resets the failures, because the vehicle has answered.
  mutating func recordResponse() {
    let partialResponses = partialResponses
    self = PollFailureCounters()
    (isConfirmed, self.partialResponses) = (true, partialResponses)
  }

  /// Handles the start of a request that has never been answered.
  mutating func candidateBegan() { isConfirmed = false }

  /// Resets the missing responses, because the vehicle has answered the liveness check.
  mutating func resetMissingResponses() { missingResponses = 0 }

  /// Counts a replacement of the fast request, and resets the failures of the previous one.
  mutating func recordReplacement() {
    replacements += 1
    (missingResponses, malformedResponses, negativeResponses, busyResponses, damagedReplies, busErrors) = (0, 0, 0, 0, 0, 0)
  }

  mutating func resetReplacements() { replacements = 0 }

  /// Counts a response with this many of the requested PIDs. Returns true if PIDs are missing repeatedly.
  mutating func recordCompleteness(_ completeness: ValueTable.Completeness) -> Bool {
    partialResponses = completeness == .all ? 0 : partialResponses + 1
    guard partialResponses >= 2 else { return false }
    partialResponses = 0
    return true
  }

  /// Counts a failure of the fast request, and returns its consequence. May begin a liveness check.
  mutating func recordFailure(
    _ failure: PollFailure, _ fast: inout FastPoll, isProbing: Bool, hasLostEcho: Bool, on bus: OBDProtocol
  ) -> PollConsequence {
    switch failure {
    case .unusable(let reason):
      recordDamagedReply(reason, &fast, isProbing: isProbing, on: bus)
      return .unusable(reason, resynchronising: true)
    case .malformed(let reason):
      malformedResponses += 1
      return .malformed(reason, isRepeated: malformedResponses >= 3)
    case .negative(let code): return recordNegativeResponse(code, pollsPIDs: fast.pollsPIDs)
    case .status(let status):
      switch status.consequence {
      case .unsupported: return .replace(status.message, otherwise: .tryOther(status.message, isFinal: false))
      case .noResponse:
        return recordMissingResponse(status.message, &fast, isProbing: isProbing, hasLostEcho: hasLostEcho, on: bus)
      // The vehicle may use another protocol.
      case .backOff where !isConfirmed: return .tryOther(status.message, isFinal: false)
      case .backOff: return isProbing || !fast.beginLivenessCheck(status.message, on: bus) ? .pause(status.message) : .retry
      case .retry: return recordBusError(status.message, &fast, isProbing: isProbing, on: bus)
      case .discard:
        recordDamagedReply(status.message, &fast, isProbing: isProbing, on: bus)
        return .unusable(status.message, resynchronising: false)
      case .resynchronise, .acknowledge, .ignore:
        recordDamagedReply(status.message, &fast, isProbing: isProbing, on: bus)
        return .unusable(status.message, resynchronising: true)
      case .reinitialise, .wake: return .settingsLost(status)
      }
    }
  }

  /// Counts a damaged reply. After several damaged replies, a liveness check shows whether only this request fails.
  private mutating func recordDamagedReply(_ message: String, _ fast: inout FastPoll, isProbing: Bool, on bus: OBDProtocol) {
    damagedReplies += 1
    if damagedReplies % 3 == 0, !isProbing { _ = fast.beginLivenessCheck(message, on: bus) }
  }

  private mutating func recordNegativeResponse(_ code: UInt8, pollsPIDs: Bool) -> PollConsequence {
    let message = "the vehicle rejected the request (\(NegativeResponse.name(of: code)))"
    let kind = NegativeResponse.consequence(of: code)
    let consequence: PollConsequence
    switch kind {
    // The vehicle stays the same: it rejects the request for now.
    case .tryOther where isConfirmed: consequence = .pause("\(message); retrying later")
    case .tryOther: consequence = .tryOther("\(message): this car may not be supported", isFinal: code == 0x33)
    case .repeatRequest:
      busyResponses += 1
      return busyResponses > 3 ? .replace(message, otherwise: .pause("\(message); retrying later")) : .retry
    case .pause:
      busyResponses += 1
      return .responsePending(message, times: busyResponses)
    case .backOff: consequence = .pause("\(message); retrying later")
    case .giveUp: consequence = .stop(message)
    }
    // An ECU that repeatedly rejects one request may answer others.
    guard pollsPIDs || isConfirmed && kind == .tryOther else { return consequence }
    negativeResponses += 1
    return negativeResponses < 3 ? .retry : .replace(message, otherwise: consequence)
  }

  private mutating func recordMissingResponse(
    _ message: String, _ fast: inout FastPoll, isProbing: Bool, hasLostEcho: Bool, on bus: OBDProtocol
  ) -> PollConsequence {
    if hasLostEcho { return .echoReturned }
    guard isConfirmed else { return .tryOther(message, isFinal: false) }
    missingResponses += 1
    guard missingResponses >= 3 else { return .retry }
    return isProbing || !fast.beginLivenessCheck(message, on: bus) ? .pause(message) : .retry
  }

  private mutating func recordBusError(_ message: String, _ fast: inout FastPoll, isProbing: Bool, on bus: OBDProtocol) -> PollConsequence {
    busErrors += 1
    guard busErrors >= 3 else { return .retry }
    if busErrors == 3, !isProbing, fast.beginLivenessCheck(message, on: bus) { return .retry }
    return .rest(message)
  }
}
