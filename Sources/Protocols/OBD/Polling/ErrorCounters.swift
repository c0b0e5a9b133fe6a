// Consecutive failures of the fast request since the last response, and what each calls for.

struct ErrorCounters: Sendable {
  /// The number of failing requests before the vehicle as a whole counts as silent.
  private static let maxReplaced = 6

  /// The vehicle has answered this request on this connection.
  private(set) var isSettled = false
  /// Polls answered in part.
  private var shortAnswers = 0
  private var silences = 0
  private var disturbances = 0
  private var busy = 0
  /// Replies that were damaged or interrupted.
  private var damaged = 0
  /// Responses of wrong length.
  private var misfits = 0
  /// Negative responses to PIDs.
  private var negatives = 0
  /// Requests replaced by the next.
  private var replacements = 0

  var mayReplace: Bool { replacements < Self.maxReplaced }

  /// The vehicle has answered.
  mutating func answered() {
    let shortAnswers = shortAnswers
    self = ErrorCounters()
    (isSettled, self.shortAnswers) = (true, shortAnswers)
  }

  /// A request is polled that was never answered.
  mutating func candidateBegins() { isSettled = false }

  /// The vehicle responds to the request that all ECUs support.
  mutating func heard() { silences = 0 }

  /// Another fast request is polled.
  mutating func replaced() {
    replacements += 1
    (silences, misfits, negatives, busy, damaged, disturbances) = (0, 0, 0, 0, 0, 0)
  }

  mutating func resetReplaced() { replacements = 0 }

  /// Whether only some PIDs are answered, repeatedly.
  mutating func isRepeatedlyShort(_ share: ValueTable.Share) -> Bool {
    shortAnswers = share == .whole ? 0 : shortAnswers + 1
    guard shortAnswers >= 2 else { return false }
    shortAnswers = 0
    return true
  }

  /// Counts a failure of the fast request, which can be in doubt from then on, and decides what follows.
  mutating func judge(
    _ failure: PollFailure, _ fast: inout FastPoll, isProbing: Bool, hasLostEcho: Bool, on bus: VehicleBus
  ) -> PollConsequence {
    switch failure {
    case .unusable(let reason):
      suspect(reason, &fast, isProbing: isProbing, on: bus)
      return .unusable(reason, resynchronising: true)
    case .misfit(let reason):
      misfits += 1
      return .misfit(reason, isRepeated: misfits >= 3)
    case .negative(let code): return rejected(code, pollsPIDs: fast.pollsPIDs)
    case .status(let status):
      switch status.demand {
      case .unsupported: return .replace(status.message, otherwise: .tryOther(status.message, isFinal: false))
      case .noResponse: return silent(status.message, &fast, isProbing: isProbing, hasLostEcho: hasLostEcho, on: bus)
      // Another protocol may be the right one.
      case .backOff where !isSettled: return .tryOther(status.message, isFinal: false)
      case .backOff: return isProbing || !fast.beginDoubt(status.message, on: bus) ? .pause(status.message) : .retry
      case .retry: return disturbed(status.message, &fast, isProbing: isProbing, on: bus)
      case .discard:
        suspect(status.message, &fast, isProbing: isProbing, on: bus)
        return .unusable(status.message, resynchronising: false)
      case .resynchronise, .acknowledge, .ignore:
        suspect(status.message, &fast, isProbing: isProbing, on: bus)
        return .unusable(status.message, resynchronising: true)
      case .reinitialize, .wake: return .settingsLost(status)
      }
    }
  }

  /// Repeated failures may be the fault of this request alone: the next poll asks for the PIDs that every ECU supports.
  private mutating func suspect(_ message: String, _ fast: inout FastPoll, isProbing: Bool, on bus: VehicleBus) {
    damaged += 1
    if damaged % 3 == 0, !isProbing { _ = fast.beginDoubt(message, on: bus) }
  }

  private mutating func rejected(_ code: UInt8, pollsPIDs: Bool) -> PollConsequence {
    let message = "the vehicle rejects the request (\(NegativeResponse.name(of: code)))"
    let demand = NegativeResponse.demand(of: code)
    let consequence: PollConsequence
    switch demand {
    case .tryOther: consequence = .tryOther("\(message): this car may not be supported", isFinal: code == 0x33)
    case .askAgain:
      busy += 1
      return busy > 3 ? .replace(message, otherwise: .pause("\(message); retrying later")) : .retry
    case .pause:
      busy += 1
      return .responsePending(message, times: busy)
    case .backOff: consequence = .pause("\(message); retrying later")
    case .giveUp: consequence = .stop(message)
    }
    // An ECU that repeatedly rejects one request may answer others.
    guard pollsPIDs else { return consequence }
    negatives += 1
    return negatives < 3 ? .retry : .replace(message, otherwise: consequence)
  }

  private mutating func silent(
    _ message: String, _ fast: inout FastPoll, isProbing: Bool, hasLostEcho: Bool, on bus: VehicleBus
  ) -> PollConsequence {
    if hasLostEcho { return .echoReturned }
    guard isSettled else { return .tryOther(message, isFinal: false) }
    silences += 1
    guard silences >= 3 else { return .retry }
    return isProbing || !fast.beginDoubt(message, on: bus) ? .pause(message) : .retry
  }

  private mutating func disturbed(_ message: String, _ fast: inout FastPoll, isProbing: Bool, on bus: VehicleBus) -> PollConsequence {
    disturbances += 1
    guard disturbances >= 3 else { return .retry }
    if disturbances == 3, !isProbing, fast.beginDoubt(message, on: bus) { return .retry }
    return .rest(message)
  }
}
