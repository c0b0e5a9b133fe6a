// The commands of a mirror. A setting is stored first and sent then; the command completes when the mirror has acknowledged it, or
// with the note that it is pending. Commands that require a name are rejected without one.

extension MirrorMachine {
  static let sendNow = Action("send-now", help: "Send all collected values once, even if send is off")

  private var namelessError: CommandError { .refused(code: "needs-username", nameless) }
  private var nothingCollected: CommandError {
    let device = settings.device
    return .refused(
      code: "collection-off", "health and weather are off: vehiclectl set \(device).health on, or \(device).weather")
  }

  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    do throws(CommandError) {
      switch command {
      case .run: try sendOneWave(id, at: now)
      case .set(let property, let value):
        let wish = try wish(property, value)
        if !keeping.keep(wish, for: id, &effects) {
          throw .refused(code: "busy", "too many pending writes to disk: try again later")
        }
      }
    } catch {
      effects.append(.complete(id, .failure(error)))
    }
  }

  private var hasUsername: Bool { keeping.next.username ?? settings.username != nil }

  /// The setting of a command; throws if it is invalid.
  private func wish(_ property: Int, _ value: Value) throws(CommandError) -> MirrorKeeping.Wish {
    switch (MirrorSignal(rawValue: property), value) {
    case (.led, .int(let percent)):
      guard hasUsername else { throw namelessError }
      return .led(percent)
    case (.interval, .int(let seconds)): return .interval(seconds)
    case (.username, .string(let name)):
      if name.isEmpty { return .username(nil) }
      if let words = MirrorMessage.refusal(name: name) { throw .invalid(argument: "username", words) }
      return .username(name)
    case (let signal?, .bool(let isOn)):
      guard let turned = MirrorSwitch.allCases.first(where: { $0.signal == signal }) else { break }
      if isOn { try allow(turned) }
      return .turn(turned, isOn)
    default: break
    }
    throw .refused(code: "unknown", "no such action")
  }

  private func allow(_ turned: MirrorSwitch) throws(CommandError) {
    switch turned {
    case .health where !settings.hasHealth:
      throw .refused(code: "not-configured", "no health source is configured: add health = [\"phone.steps\"] to the device's section")
    case .weather where !settings.hasWeather:
      throw .refused(
        code: "not-configured", "no weather source is configured: add weather = \"NAME\" to the device's section")
    case .send:
      guard hasUsername else { throw namelessError }
      guard !keeping.next.on.isDisjoint(with: [.health, .weather]) else { throw nothingCollected }
    default: break
    }
  }

  private mutating func sendOneWave(_ id: CommandID, at now: Instant) throws(CommandError) {
    guard username != nil else { throw namelessError }
    guard isCollecting else { throw nothingCollected }
    switch state {
    case .down(let reason): throw .notConnected(reason)
    case .parting: throw .notConnected("the link is being closed")
    case .up: break
    }
    let parcels = collected(for: id)
    guard !parcels.isEmpty else {
      throw .refused(code: "no-data", nothingKnown)
    }
    parcels.forEach { put($0) }
    let count = "\(parcels.count) \(parcels.count == 1 ? "value" : "values") acknowledged"
    hold(id, Report(text: [count, pictures].compactMap(\.self).joined(separator: "; ")), isKept: false, at: now)
  }

  // MARK: Stored

  mutating func stored(_ key: String, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    let before = username
    guard let (id, wish) = keeping.stored(key, failure) else { return }
    if let failure {
      if let id { effects.append(.complete(id, .failure(.refused(code: "not-stored", failure)))) }
      return
    }
    publishKept(&effects)
    switch wish {
    case .led:
      guard isUp, let parcel = light(for: id) else { return answer(id, pending(pictures), &effects) }
      put(parcel)
      if let id { hold(id, Report(text: pictures), at: now) }
    case .username: renamed(from: before, id, at: now, &effects)
    case .interval:
      if wave != nil { wave = min(wave ?? .max, now &+ Nanoseconds(interval) &* .second) }
      answer(id, nil, &effects)
    case .turn(let turned, let isOn):
      plan(at: now)
      if isOn { hurry(at: now) }
      answer(id, words(turned, isOn), &effects)
    }
  }

  private func answer(_ id: CommandID?, _ text: String?, _ effects: inout Effects) {
    if let id { effects.append(.complete(id, .success(Report(text: text)))) }
  }

  private mutating func renamed(from before: String?, _ id: CommandID?, at now: Instant, _ effects: inout Effects) {
    plan(at: now)
    guard let username, username != before else { return answer(id, nil, &effects) }
    for other in waits.keys.sorted() where waits[other]?.name != nil {
      waits[other] = nil
      effects.append(.complete(other, .failure(.refused(code: "replaced", "another name was set in the meantime"))))
    }
    // The display reads a name together with the next value.
    let isFollowed = keeping.now.led != nil || isToSend
    let words = isFollowed ? pictures : "the mirror shows the name after the next value: vehiclectl set \(settings.device).led 50"
    guard case .up(let session) = state else { return answer(id, pending(words), &effects) }
    if session.has(username) { return answer(id, nil, &effects) }
    if let id { hold(id, Report(text: words), name: username, at: now) }
  }

  /// A remark before the first value under a new name is sent.
  private var pictures: String? {
    guard let username, !keeping.introduced.contains(username) else { return nil }
    return "stand in front of the mirror: it takes pictures of you if the name is new"
  }

  private func words(_ turned: MirrorSwitch, _ isOn: Bool) -> String? {
    guard isOn else { return nil }
    if turned == .health, MirrorMetric.health.allSatisfy({ settings.sources[$0] == nil || !isPermitted($0) }) {
      return "no value is permitted yet: vehiclectl set \(settings.device).send-steps on, or another send- property"
    }
    // The configured device probably does not exist.
    if turned == .weather, MirrorMetric.weather.allSatisfy({ known[$0] == nil }), let reason = missing[.temperature] {
      return "no value yet; \(reason)"
    }
    let words = [isUp ? nil : "pending: starts when the mirror is connected", isToSend ? pictures : nil].compactMap(\.self)
    return words.isEmpty ? nil : words.joined(separator: "; then ")
  }
}
