// Clears trouble codes: the codes are read and shown. After confirmation they are stored in the journal and on disk. Only then, and
// only while the vehicle is stationary, service 04 is sent once. Nothing else clears codes.
//
//   idle ─ confirmed ─▶ requesting ─ codes read ─▶ awaitingTime ─ time ─▶ storing ─ stored ─▶ requesting (service 04) ─ completed ─▶ idle
//                                                                            └─ cancelled ─▶ abandoned ─ stored or failed ─▶ idle

struct CodeClearingSequence: Sendable {
  /// The key under which the last clear operations are stored, one line each.
  static let key = "cleared-codes"
  private static let maxLines = 20

  enum State: Sendable {
    case idle
    /// The command's requests are queued or in progress: first those that read the codes, later service 04.
    case requesting(CommandID)
    /// The codes were read; the wall-clock time that is stored with them was requested.
    case awaitingTime(CommandID, ClearingPreview)
    /// The codes are being written to disk.
    case storing(CommandID, ClearingPreview, stored: [UInt8])
    /// The codes are being written, but the client has disconnected.
    case abandoned(CommandID)
  }

  private(set) var state = State.idle
  /// The stored lines of earlier clear operations.
  private var lines: [UInt8] = []

  /// The command of the clear operation in progress.
  private var id: CommandID? {
    switch state {
    case .idle: nil
    case .requesting(let id), .awaitingTime(let id, _), .storing(let id, _, _), .abandoned(let id): id
    }
  }

  mutating func restore(_ lines: [UInt8]?) { self.lines = lines ?? [] }

  /// The query that reads what clearing would erase. Throws if a confirmed clear operation is already in progress. `ecus` are the ECUs
  /// known from detection. `isResponding`: the vehicle responds to other requests.
  func preview(isConfirmed: Bool, _ motion: Motion, ecus: [UInt32], isResponding: Bool) throws(CommandError) -> ClearingPreview {
    if isConfirmed, id != nil {
      throw .refused(code: .busy, "the codes are already being cleared; read them again afterwards")
    }
    return ClearingPreview(isConfirmed: isConfirmed, motion, knownECUs: ecus, isResponding: isResponding)
  }

  /// Begins a confirmed clear operation, whose requests are queued.
  mutating func begin(_ id: CommandID) { state = .requesting(id) }

  /// Requests the wall-clock time after the codes of a confirmed clear operation were read.
  mutating func codesRead(by query: OBDQuery, _ effects: inout Effects) {
    guard id == query.id, let preview = query.confirmedPreview else { return }
    state = .awaitingTime(query.id, preview)
    effects.append(.requestTime)
  }

  /// Stores the codes with the wall-clock time.
  mutating func timeReceived(_ wall: WallTime, _ effects: inout Effects) {
    guard case .awaitingTime(let id, let preview) = state else { return }
    var stored: [UInt8] = []
    for line in lines.split(separator: lineFeed).suffix(Self.maxLines - 1) { stored += line + [lineFeed] }
    stored += Array("\(WallTime.isoTime(wall.microseconds)) \(preview.message)\n".utf8)
    state = .storing(id, preview, stored: stored)
    effects.append(.event(name: "clearing-codes", text: "clearing the trouble codes: \(preview.message)"))
    effects.append(.store(key: Self.key, stored))
    effects.append(.progress(id, Report(text: "codes stored", progress: 0.5)))
  }

  /// Handles the result of storing the codes. Returns the query that clears them, or nil if there is none.
  mutating func stored(
    _ key: String, _ failure: String?, _ motion: Motion, requiresResponse: Bool, _ effects: inout Effects
  ) -> OBDQuery? {
    guard key == Self.key else { return nil }
    switch state {
    case .idle, .requesting, .awaitingTime: return nil
    case .abandoned:
      state = .idle
      return nil
    case .storing(let id, let preview, let stored):
      if let failure {
        let message = "no trouble code was cleared: cannot store the codes first: \(failure)"
        effects.append(.complete(id, .failure(.refused(code: .notStored, message))))
        state = .idle
        return nil
      }
      lines = stored
      state = .requesting(id)
      return OBDQuery(id, CodeClearing(preview.ecus, motion, requiresResponse: requiresResponse))
    }
  }

  /// Handles the completion of a query.
  mutating func completed(_ id: CommandID) {
    if self.id == id { state = .idle }
  }

  /// Handles a client that has disconnected.
  mutating func cancelled(_ id: CommandID) {
    guard self.id == id else { return }
    if case .storing = state { state = .abandoned(id) } else { state = .idle }
  }

  /// Ends a clear operation that is waiting for the wall-clock time or the disk write, because the link is lost. Queries end on their own.
  mutating func linkLost(_ error: CommandError, _ effects: inout Effects) {
    switch state {
    case .idle, .requesting, .abandoned: break
    case .awaitingTime(let id, _), .storing(let id, _, _):
      effects.append(.complete(id, .failure(error)))
      cancelled(id)
    }
  }
}

extension CodeClearing {
  /// The journal entry about the outcome of service 04, or nil if there is no outcome yet. It is logged even if the client has
  /// disconnected.
  var event: Effect? {
    guard outcomes != nil else { return nil }
    return .event(
      name: hasCleared ? "codes-cleared" : isOutcomeUnknown ? "codes-clear-unconfirmed" : "codes-not-cleared",
      text: "trouble codes: \(message)")
  }
}

extension OBDQuery {
  /// The codes that a confirmed clear operation has read; nil for any other query.
  var confirmedPreview: ClearingPreview? { (multiECU as? ClearingPreview).flatMap { $0.isConfirmed ? $0 : nil } }

  /// The result for the client. Once service 04 was sent, its outcome takes precedence over later errors.
  func reported(_ result: Result<Report, CommandError>, lastCommand: [UInt8]) -> Result<Report, CommandError> {
    guard case .failure = result, let clearing = multiECU as? CodeClearing else { return result }
    if clearing.hasCleared { return .success(clearing.report(hasReadRemaining: false)) }
    guard clearing.outcomes == nil, step == .request(CodeClearing.clearIndex), lastCommand == command else { return result }
    return .failure(
      .refused(code: .outcomeUnknown, "the clear request was sent, but its outcome is unknown; read the codes again"))
  }
}
