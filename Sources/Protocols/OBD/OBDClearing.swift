// Clearing of trouble codes: the codes are read and shown. After confirmation they are stored in the journal and on disk; only then, and
// only while the vehicle is stationary, service 04 is sent once. There is no other way to clear.

/// A confirmed clearing in progress.
struct Clearing: Sendable {
  enum Stage: Sendable {
    /// Its requests are in progress or queued.
    case asking
    /// The codes are read and wait for the wall clock time.
    case timing(CodeLoss)
    /// The codes are being written to disk.
    case storing(CodeLoss, kept: [UInt8])
    /// The codes are being written, but the caller has disconnected.
    case abandoned
  }

  /// The stored key of the last clearings, one line each.
  static let key = "cleared-codes"
  static let most = 20

  let id: CommandID
  var stage = Stage.asking
}

extension OBDMachine {
  private static let confirm = "confirm"

  static let clear = Action(
    "dtc-clear",
    arguments: [Argument(confirm, .bool, optional: true, help: "Clear the codes; without it, only show what would be lost")],
    help: "Show what clearing the trouble codes would erase, or clear them after storing it in the journal and on disk")

  /// The requests of a clearing.
  func loss(_ arguments: [String: Value], at now: Instant) throws(CommandError) -> CodeLoss {
    let isConfirmed = arguments[Self.confirm] == .bool(true)
    if isConfirmed, clearing != nil {
      throw .refused(code: "busy", "the codes are already being cleared; read the remaining ones when it is done")
    }
    let known = if case .standard(let found) = vehicle { found.controllers.map(\.identifier) } else { [UInt32]() }
    return CodeLoss(isConfirmed: isConfirmed, Motion(values.speeds, at: now), known: known)
  }

  /// Stores the codes of a confirmed clearing first. Returns false if the query is not one.
  mutating func beginsClearing(_ query: OBDQuery, _ result: Result<Report, CommandError>, _ effects: inout Effects) -> Bool {
    guard case .success = result, query.isWanted, clearing?.id == query.id, let loss = query.confirmedLoss else { return false }
    clearing?.stage = .timing(loss)
    effects.append(.requestTime)
    return true
  }

  /// Stores the codes with the wall clock time.
  mutating func keepCodes(_ wall: WallTime, _ effects: inout Effects) {
    guard case .timing(let loss)? = clearing?.stage, let id = clearing?.id else { return }
    let lines =
      clearings.split(separator: lineFeed).suffix(Clearing.most - 1) + [
        Array("\(WallTime.isoTime(wall.microseconds)) \(loss.message)".utf8)[...]
      ]
    let kept = lines.flatMap { $0 + [lineFeed] }
    clearing?.stage = .storing(loss, kept: kept)
    effects.append(.event(name: "clearing-codes", text: "clearing the trouble codes: \(loss.message)"))
    effects.append(.store(key: Clearing.key, kept))
    effects.append(.progress(id, Report(text: "codes stored", progress: 0.5)))
  }

  /// Continues once the codes are stored, or fails.
  mutating func keptCodes(_ key: String, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard key == Clearing.key, let clearing else { return }
    switch clearing.stage {
    case .asking, .timing: break
    case .abandoned: self.clearing = nil
    case .storing(let loss, let kept):
      if let failure {
        let message = "no trouble code was cleared: cannot store the codes first: \(failure)"
        effects.append(.complete(clearing.id, .failure(.refused(code: "not-stored", message))))
        return self.clearing = nil
      }
      clearings = kept
      self.clearing?.stage = .asking
      questions.insert(OBDQuery(clearing.id, CodeClearing(loss.controllers, Motion(values.speeds, at: now), mustAnswer: bus.isCAN)), at: 0)
    }
  }

  /// Logs the outcome of service 04, even if the caller has disconnected.
  mutating func tellClearing(_ query: OBDQuery, _ effects: inout Effects) {
    guard let done = query.survey as? CodeClearing, done.outcomes != nil else { return }
    effects.append(
      .event(
        name: done.hasCleared ? "codes-cleared" : done.isUnknown ? "codes-clear-unconfirmed" : "codes-not-cleared",
        text: "trouble codes: \(done.message)"))
    if done.hasCleared || done.isUnknown { requestQueue.hasten() }
  }

  /// The caller has disconnected.
  mutating func forgetClearing(_ id: CommandID) {
    guard let clearing, clearing.id == id else { return }
    if case .storing = clearing.stage { self.clearing?.stage = .abandoned } else { self.clearing = nil }
  }

  /// Ends a clearing that waits for the disk because the link is gone. Its requests have ended before.
  mutating func failClearing(_ error: CommandError, _ effects: inout Effects) {
    guard let clearing else { return }
    switch clearing.stage {
    case .asking, .abandoned: return
    case .timing, .storing: effects.append(.complete(clearing.id, .failure(error)))
    }
    forgetClearing(clearing.id)
  }
}

extension OBDQuery {
  /// The codes of a confirmed clearing.
  var confirmedLoss: CodeLoss? { (survey as? CodeLoss).flatMap { $0.isConfirmed ? $0 : nil } }

  /// The result for the caller: once service 04 was sent, its outcome has precedence over later errors.
  func told(_ result: Result<Report, CommandError>, lastCommand: [UInt8]) -> Result<Report, CommandError> {
    guard case .failure = result, let clearing = survey as? CodeClearing else { return result }
    if clearing.hasCleared { return .success(clearing.report(isReadAgain: false)) }
    guard clearing.outcomes == nil, step == .ask(CodeClearing.place), lastCommand == command else { return result }
    return .failure(
      .refused(code: "outcome-unknown", "the clear request was sent, but its outcome is unknown; read the codes again"))
  }
}
