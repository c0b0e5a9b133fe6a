// Execution of queries between two polls: a query waits for the command in flight, goes before the next poll, and restores header and
// filter. Each query completes exactly once, unless its caller has disconnected.

extension OBDMachine {
  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    guard case .run(let index, let arguments) = command, Self.actions.indices.contains(index) else {
      return effects.append(.complete(id, .failure(.refused(code: "read-only", "an obd device has no writable properties; use query"))))
    }
    if Self.actions[index] == Self.tune { return tune(id, &effects) }
    if Self.actions[index] == Self.rates { return effects.append(.complete(id, .success(ratesReport(at: now)))) }
    do throws(CommandError) {
      let query =
        switch Self.actions[index] {
        case Self.codes: OBDQuery(id, CodeList(mustAnswer: bus.isCAN))
        case Self.clear: OBDQuery(id, try loss(arguments, at: now))
        case Self.frames: OBDQuery(id, FrameList(isCAN: bus.isCAN, scales: values.scales))
        case Self.monitors: OBDQuery(id, MonitorList(isCAN: bus.isCAN))
        case Self.ecuCodes: OBDQuery(id, try ecuCodes(arguments))
        default: try OBDQuery(id, arguments, allowRaw: allowRaw)
        }
      switch state {
      case .down(let reason), .resting(_, let reason): throw .notConnected(reason)
      case .settingUp, .polling, .asking, .backingOff, .querying, .turning, .inquiring, .namingBus, .measuring, .lulling, .asleep: break
      }
      if questions.count >= Self.queueLimit {
        throw .refused(code: "busy", "\(Self.queueLimit) queries are already waiting; try again when they are done")
      }
      questions.append(query)
      if query.confirmedLoss != nil { clearing = Clearing(id: id) }
    } catch {
      effects.append(.complete(id, .failure(error)))
    }
  }

  /// The caller has disconnected: the query is dropped, or its result discarded.
  mutating func forget(_ id: CommandID) {
    questions.removeAll { $0.id == id }
    if tuning?.id == id {
      timings.usual = tuning?.before ?? .initial
      tuning = nil
      writePollBytes()
    }
    if case .querying(var query, let pause) = state, query.id == id {
      query.isWanted = false
      state = .querying(query, pause)
    }
    forgetClearing(id)
  }

  mutating func beginQuery(_ pause: Pause?, at now: Instant, _ effects: inout Effects) {
    var query = questions.removeFirst()
    if query.header != nil, !bus.isCAN, bus != .search {
      return effects.append(.complete(query.id, .failure(.refused(code: "no-can", "\(Self.noCAN); leave it out"))))
    }
    query.prepare(for: traits, aimedAt: addressing, home: home)
    state = .querying(query, pause)
    send(query.command, at: now, &effects)
  }

  mutating func queryReplied(_ query: OBDQuery, _ pause: Pause?, at now: Instant, _ effects: inout Effects) {
    var query = query
    switch query.step {
    case .prepare:
      // Until the last of them is accepted the addressing is unknown.
      addressing?.target = nil
      if isAcknowledged {
        if query.isWanted { query.prepared() } else { query.skipToRestore() }
        if case .ask = query.step { addressing = query.addressing }
      } else if !query.hasOtherWay {
        let command = String(decoding: query.command.dropLast(), as: UTF8.self)
        let message = "the adapter rejected \(command): \(printable(dialogue.reply[dialogue.body...]))"
        complete(query, .failure(.refused(code: "adapter-refused", message)), &effects)
        query.skipToRestore()
      } else {
        query.position += 1
      }
      resume(query, pause)
    case .ask(let place):
      if query.isWanted, !query.isPatient, query.isHarmless(place), isPending() {
        query.isPatient = true
        query.prepare(for: traits, aimedAt: addressing, home: home, from: place)
        return resume(query, pause)
      }
      let result = query.take(dialogue, &reader, values.scales, place)
      if place == CodeClearing.place { tellClearing(query, &effects) }
      guard let result else {
        // A request that changes something is not sent without a caller.
        if query.isWanted { askNext(&query, behind: place, &effects) } else { query.skipToRestore() }
        return resume(query, pause)
      }
      if !beginsClearing(query, result, &effects) { complete(query, result, &effects) }
      query.skipToRestore()
      resume(query, pause)
      afterwards(result, at: now, &effects)
    case .restore:
      guard isAcknowledged else {
        values.publish(fault: "the adapter did not accept its previous settings: reinitialising it", &effects)
        return setUpAgain(at: now, &effects)
      }
      query.position += 1
      resume(query, pause)
    case nil: resume(query, pause)
    }
  }

  /// The next request of a multi-ECU query. Long queries report progress, because callers time out.
  private mutating func askNext(_ query: inout OBDQuery, behind place: Int, _ effects: inout Effects) {
    query.prepare(for: traits, aimedAt: addressing, home: home, from: place + 1)
    guard query.survey?.isLong ?? false else { return }
    let progress = Double(place + 1) / Double(query.texts.count)
    effects.append(.progress(query.id, Report(text: "\(place + 1) of \(query.texts.count) requests", progress: progress)))
  }

  /// A response is pending beyond the adapter's timeout.
  private mutating func isPending() -> Bool {
    guard case .messages = reader.read(dialogue.reply, from: dialogue.body) else { return false }
    return reader.messages.map { ECUAnswer(source: $0.source, bytes: Array(reader.bytes(of: $0))) }.isPending
  }

  /// After an unusable reply another may follow: resynchronise. An adapter that restarted needs all its settings.
  private mutating func afterwards(_ result: Result<Report, CommandError>, at now: Instant, _ effects: inout Effects) {
    guard case .failure(.refused(let code, let message)) = result else { return }
    if code == "bad-reply" { return resynchronise(at: now, &effects) }
    guard code == "adapter-restarted" else { return }
    values.publish(fault: message, &effects)
    setUpAgain(at: now, &effects)
  }

  /// The last line of the reply is `OK`.
  var isAcknowledged: Bool {
    let text = dialogue.reply[dialogue.body...]
    guard let end = text.lastIndex(where: { !isBlank($0) }) else { return false }
    let start = text[...end].lastIndex(where: isLineEnd) ?? text.startIndex
    return text[start...end].drop(while: isBlank).elementsEqual("OK".utf8)
  }

  /// The remaining commands that restore settings.
  mutating func putBack(_ query: OBDQuery, _ pause: Pause?, at now: Instant, _ effects: inout Effects) {
    var query = query
    query.skipToRestore()
    resume(query, pause)
  }

  private mutating func resume(_ query: OBDQuery, _ pause: Pause?) {
    if query.step != nil {
      state = .querying(query, pause)
      return
    }
    // A raw command may have changed any setting: retarget the adapter.
    if query.isRaw { addressing = nil }
    if let pause {
      state = .backingOff(pause)
    } else {
      state = .polling
    }
  }

  /// Completes the query, once.
  mutating func complete(_ query: OBDQuery, _ result: Result<Report, CommandError>, _ effects: inout Effects) {
    guard query.isWanted && query.isPending else { return }
    effects.append(.complete(query.id, query.told(result, lastCommand: dialogue.command)))
    if clearing?.id == query.id { clearing = nil }
  }

  mutating func failCurrentQuery(_ error: CommandError, _ effects: inout Effects) {
    if case .querying(let query, _) = state { complete(query, .failure(error), &effects) }
  }

  /// Completes all queries: there is no link.
  mutating func failQueries(_ error: CommandError, _ effects: inout Effects) {
    failCurrentQuery(error, &effects)
    for query in questions { complete(query, .failure(error), &effects) }
    questions.removeAll()
    failClearing(error, &effects)
  }
}
