// Requests the descriptions of the modes from the car, and caches them while the link is up. In the as-built dialect, the car returns one
// text per request, without the number of the mode. So requests are sent one at a time. After a timeout, the next request waits until a
// late response can no longer be mistaken for the response to it. In the documented dialect, one request returns all descriptions.

struct CarModeQuery: Sendable {
  private static let timeout: Nanoseconds = 2 * .second
  private static let maxWaiters = 8
  private static let maxTextLength = 1000

  /// A waiting command.
  private struct Waiter: Sendable {
    let id: CommandID
    /// The requested mode; nil for all modes.
    let mode: Int?
  }

  /// The request to the car.
  private enum State {
    case idle
    case requested(mode: Int, until: Instant)
    /// The request timed out. No other request is sent until this time, because a late response may still arrive.
    case pausing(until: Instant)
  }

  private let dialect: CarDialect
  private var state = State.idle
  /// The known descriptions, by number.
  private var texts: [Int: String] = [:]
  private var waiters: [Waiter] = []
  /// The number of responses for the first waiting command.
  private var responses = 0

  init(_ dialect: CarDialect) { self.dialect = dialect }

  var deadline: Instant? {
    switch state {
    case .idle: nil
    case .requested(_, let until), .pausing(let until): until
    }
  }

  // MARK: Commands

  /// Adds a command that requests the description of one mode, or of all modes if `mode` is nil.
  mutating func add(_ mode: Value?, _ modes: CarModes, for id: CommandID, _ effects: inout Effects) {
    var requested: Int?
    if case .string(let name)? = mode {
      switch modes.find(name) {
      case .failure(let error): return effects.fail(command: id, error)
      case .success(let number): requested = number
      }
    } else if modes.names.isEmpty {
      return effects.refuse(
        command: id, code: .noModes, "the car has not reported its modes yet: try again, or give a number")
    }
    guard waiters.count < Self.maxWaiters else {
      return effects.refuse(command: id, code: .busy, "too many requests for mode descriptions: try again later")
    }
    waiters.append(Waiter(id: id, mode: requested))
  }

  mutating func cancel(_ id: CommandID) {
    if waiters.first?.id == id { responses = 0 }
    waiters.removeAll { $0.id == id }
  }

  // MARK: Events

  /// Completes the commands whose descriptions are known; returns the mode to request from the car next, if any.
  mutating func advance(_ modes: CarModes, _ effects: inout Effects) -> Int? {
    while let waiter = waiters.first {
      let requested = waiter.mode.map { $0..<$0 + 1 } ?? modes.names.indices
      if let next = requested.first(where: { texts[$0] == nil }) {
        if case .idle = state { return next }
        return nil
      }
      waiters.removeFirst()
      responses = 0
      if let mode = waiter.mode {
        effects.succeed(command: waiter.id, Report(text: texts[mode]))
      } else {
        let rows = modes.names.indices.map { [String($0), modes.names[$0], texts[$0] ?? ""] }
        effects.succeed(command: waiter.id, Report(columns: ["number", "name", "description"], rows: rows))
      }
    }
    return nil
  }

  /// Starts the timeout: the link has accepted the request.
  mutating func requestSent(_ mode: Int, at now: Instant) { state = .requested(mode: mode, until: now &+ Self.timeout) }

  /// Handles a response; returns false if none was requested.
  mutating func received(_ body: [UInt8], _ modes: CarModes, _ effects: inout Effects) -> Bool {
    guard case .requested(let mode, _) = state else { return false }
    state = .idle
    if dialect == .documented {
      let list = CarText.list(body[...], maxCount: CarModes.maxCount, limit: Self.maxTextLength)
      for (number, text) in list.enumerated() { texts[number] = text }
      // The car has no description of these modes: do not request them again.
      for number in Array(modes.names.indices) + [mode] where texts[number] == nil && number < CarModes.maxCount { texts[number] = "" }
      return true
    }
    if mode < CarModes.maxCount { texts[mode] = CarText.clean(body[...], limit: Self.maxTextLength) }
    guard let waiter = waiters.first, waiter.mode == nil else { return true }
    responses += 1
    let part = Double(texts.count) / Double(max(modes.names.count, 1))
    effects.append(.progress(waiter.id, Report(text: "\(responses) of \(modes.names.count) modes", progress: min(part, 1))))
    return true
  }

  /// Discards the descriptions, because the list of modes has changed, so this is another car.
  mutating func listChanged() { texts = [:] }

  mutating func expire(at now: Instant, _ effects: inout Effects) {
    guard let deadline, now >= deadline else { return }
    switch state {
    case .idle, .pausing: state = .idle
    case .requested:
      failCommands(.timeout(milliseconds: Int(Self.timeout / .millisecond)), &effects)
      state = .pausing(until: now &+ Self.timeout)
    }
  }

  /// Fails all waiting commands, because the request cannot be sent, or the link is lost or being closed.
  mutating func failCommands(_ error: CommandError, _ effects: inout Effects) {
    for waiter in waiters { effects.fail(command: waiter.id, error) }
    (waiters, responses, state) = ([], 0, .idle)
  }
}
