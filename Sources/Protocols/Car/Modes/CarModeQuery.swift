// The descriptions of the modes. As built the car returns one text per request without its number, so requests are sent one at a
// time, and after a timeout none is sent until a late response cannot be mistaken for the next one. As documented one request
// returns all. Descriptions are kept while the link is up.

struct CarModeQuery: Sendable {
  static let timeout: Nanoseconds = 2 * .second
  private static let most = 8

  /// A waiting command.
  struct Waiter: Sendable, Equatable {
    var id: CommandID
    /// nil: all modes.
    var mode: Int?
    var told = 0
  }

  private(set) var waiters: [Waiter] = []
  /// The requested mode, and its timeout.
  private(set) var asked: (mode: Int, deadline: Instant)?
  /// A late response may still arrive.
  private(set) var restUntil: Instant?

  var deadline: Instant? { asked?.deadline ?? restUntil }

  mutating func add(_ waiter: Waiter) -> Bool {
    guard waiters.count < Self.most else { return false }
    waiters.append(waiter)
    return true
  }

  mutating func asked(_ mode: Int, at now: Instant) { asked = (mode, now &+ Self.timeout) }

  /// A response has arrived: returns its mode.
  mutating func answered() -> Int? {
    defer { asked = nil }
    return asked?.mode
  }

  mutating func rest(until: Instant?) { (asked, restUntil) = (nil, until) }

  mutating func told() -> Int {
    waiters[0].told += 1
    return waiters[0].told
  }

  mutating func takeFirst() -> Waiter { waiters.removeFirst() }
  mutating func takeAll() -> [Waiter] {
    defer { waiters = [] }
    return waiters
  }

  mutating func forget(_ id: CommandID) { waiters.removeAll { $0.id == id } }
}

extension CarMachine {
  mutating func inquire(_ mode: Value?, for id: CommandID, _ effects: inout Effects) {
    var wanted: Int?
    if case .string(let name)? = mode {
      switch modes.find(name) {
      case .failure(let error): return effects.append(.complete(id, .failure(error)))
      case .success(let number): wanted = number
      }
    } else if modes.names.isEmpty {
      let message = "the car has not reported its modes yet: try again, or give a number"
      return effects.append(.complete(id, .failure(.refused(code: "no-modes", message))))
    }
    if !modeQuery.add(CarModeQuery.Waiter(id: id, mode: wanted)) {
      effects.append(.complete(id, .failure(.refused(code: "busy", "too many requests for mode descriptions: try again later"))))
    }
  }

  /// Replies with known descriptions, and requests unknown ones.
  mutating func pursueInquiry(_ effects: inout Effects) {
    guard session.isReady else { return }
    while let waiter = modeQuery.waiters.first {
      let wanted = waiter.mode.map { [$0] } ?? Array(modes.names.indices)
      guard let next = wanted.first(where: { modes.texts[$0] == nil }) else {
        answer(modeQuery.takeFirst(), &effects)
        continue
      }
      let isAsking = queue.commands.contains { if case .modeInfo = $0.purpose { true } else { false } }
      if !isAsking, modeQuery.asked == nil, modeQuery.restUntil == nil {
        _ = queue.add(CarQueuedCommand(.modeInfo(next), [.infoModes(next)]))
      }
      return
    }
  }

  private func answer(_ waiter: CarModeQuery.Waiter, _ effects: inout Effects) {
    if let mode = waiter.mode {
      return effects.append(.complete(waiter.id, .success(Report(text: modes.texts[mode]))))
    }
    let rows = modes.names.indices.map { [String($0), modes.names[$0], modes.texts[$0] ?? ""] }
    effects.append(.complete(waiter.id, .success(Report(columns: ["number", "name", "description"], rows: rows))))
  }

  mutating func hearModeInfo(_ body: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard let mode = modeQuery.answered() else { return reader.note("ignored: unexpected description of a mode", at: now, &effects) }
    if options.dialect == .documented {
      modes.learn(texts: body)
      // A missing description is unknown to the car.
      for number in Array(modes.names.indices) + [mode] where modes.texts[number] == nil { modes.learn(text: [], of: number) }
    } else {
      modes.learn(text: body, of: mode)
    }
    guard let waiter = modeQuery.waiters.first, waiter.mode == nil, options.dialect == .asBuilt else { return }
    let part = Double(modes.texts.count) / Double(max(modes.names.count, 1))
    let message = "\(modeQuery.told()) of \(modes.names.count) modes"
    effects.append(.progress(waiter.id, Report(text: message, progress: min(part, 1))))
  }

  mutating func expireInquiry(at now: Instant, _ effects: inout Effects) {
    guard let deadline = modeQuery.deadline, now >= deadline else { return }
    guard modeQuery.asked != nil else { return modeQuery.rest(until: nil) }
    failInquiry(.timeout(milliseconds: Int(CarModeQuery.timeout / .millisecond)), &effects)
    modeQuery.rest(until: now &+ CarModeQuery.timeout)
  }

  mutating func failInquiry(_ error: CommandError, _ effects: inout Effects) {
    for waiter in modeQuery.takeAll() { effects.append(.complete(waiter.id, .failure(error))) }
    modeQuery.rest(until: nil)
  }
}
