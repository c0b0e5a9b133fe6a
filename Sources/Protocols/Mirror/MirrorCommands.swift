// The commands of a mirror. A setting is stored first and then sent. The command completes when the mirror has acknowledged the setting, or
// with the remark that the setting is pending. Commands that require a name are rejected without one.

extension MirrorMachine {
  static let sendNow = Action("send-now", help: "Send all collected values once, even if send is off")

  private var noNameError: CommandError { .refused(code: .needsUsername, noNameMessage) }
  private var collectionOff: CommandError {
    let device = settings.device
    return .refused(
      code: .collectionOff, "health and weather are off: vehiclectl set \(device).health on, or \(device).weather")
  }

  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    do throws(CommandError) {
      switch command {
      case .run: try sendOneUpdate(id, at: now)
      case .set(let index, let value):
        guard let property = MirrorProperty(rawValue: index) else { throw .refused(code: .notSupported, "no such action") }
        try check(property, value)
        try persisted.set(index, value, for: id, &effects)
      }
    } catch {
      effects.append(.complete(id, .failure(error)))
    }
  }

  private var hasUsername: Bool { persisted.latest(.username) ?? settings.username.map { .string($0) } != nil }

  /// Checks the rules for a setting that its declaration in the schema cannot express; throws if the value is invalid.
  private func check(_ property: MirrorProperty, _ value: Value) throws(CommandError) {
    switch (property, value) {
    case (.led, _): guard hasUsername else { throw noNameError }
    case (.username, .string(let name)) where !name.isEmpty:
      if let message = MirrorMessage.refusal(name: name) { throw .invalid(argument: "username", message) }
    case (.health, .bool(true)) where !settings.hasHealth:
      throw .refused(code: .notConfigured, "no health source is configured: add health = [\"phone.steps\"] to the device's section")
    case (.weather, .bool(true)) where !settings.hasWeather:
      throw .refused(
        code: .notConfigured, "no weather source is configured: add weather = \"NAME\" to the device's section")
    case (.send, .bool(true)):
      guard hasUsername else { throw noNameError }
      guard persisted.latest(.health) == .bool(true) || persisted.latest(.weather) == .bool(true) else { throw collectionOff }
    default: break
    }
  }

  private mutating func sendOneUpdate(_ id: CommandID, at now: Instant) throws(CommandError) {
    guard username != nil else { throw noNameError }
    guard isCollecting else { throw collectionOff }
    switch state {
    case .down(let reason): throw .notConnected(reason)
    case .shuttingDown: throw .notConnected("the link is being closed")
    case .up: break
    }
    let pendingValues = collected(for: id)
    guard !pendingValues.isEmpty else {
      throw .refused(code: .noData, noDataReason)
    }
    pendingValues.forEach { enqueue($0) }
    let count = "\(pendingValues.count) \(pendingValues.count == 1 ? "value" : "values") acknowledged"
    awaitAcknowledgement(id, Report(text: [count, pictureRemark].compactMap(\.self).joined(separator: "; ")), isStored: false, at: now)
  }

  // MARK: Stored

  mutating func stored(_ key: String, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    let before = username
    guard let change = persisted.stored(key, failure, &effects), let property = MirrorProperty(rawValue: change.property) else { return }
    let id = change.id
    publishStored(&effects)
    switch property {
    case .led:
      guard isUp, let pendingValue = pendingBrightness(for: id) else { return answer(id, pending(pictureRemark), &effects) }
      enqueue(pendingValue)
      if let id { awaitAcknowledgement(id, Report(text: pictureRemark), at: now) }
    case .username: renamed(from: before, id, at: now, &effects)
    case .interval:
      if nextUpdate != nil { nextUpdate = min(nextUpdate ?? .max, now &+ Nanoseconds(interval) &* .second) }
      answer(id, nil, &effects)
    default:
      scheduleUpdates(at: now)
      if isOn(property) { expedite(at: now) }
      answer(id, remark(property), &effects)
    }
  }

  private func answer(_ id: CommandID?, _ text: String?, _ effects: inout Effects) {
    effects.succeed(command: id, Report(text: text))
  }

  private mutating func renamed(from before: String?, _ id: CommandID?, at now: Instant, _ effects: inout Effects) {
    scheduleUpdates(at: now)
    guard let username, username != before else { return answer(id, nil, &effects) }
    for other in pendingCommands.keys.sorted() where pendingCommands[other]?.name != nil {
      pendingCommands[other] = nil
      effects.append(.complete(other, .failure(.refused(code: .replaced, "another name was set in the meantime"))))
    }
    // The display reads a name together with the next value.
    let isFollowedByValue = persisted[.led] != nil || isUpdating
    let message =
      isFollowedByValue ? pictureRemark : "the mirror shows the name after the next value: vehiclectl set \(settings.device).led 50"
    guard case .up(let session) = state else { return answer(id, pending(message), &effects) }
    if session.hasAcknowledged(username) { return answer(id, nil, &effects) }
    if let id { awaitAcknowledgement(id, Report(text: message), name: username, at: now) }
  }

  /// The remark for a name under which no value has been sent yet; nil for other names.
  private var pictureRemark: String? {
    guard let username, !acknowledgements.names.contains(username) else { return nil }
    return "stand in front of the mirror: it takes pictures of you if the name is new"
  }

  private func remark(_ property: MirrorProperty) -> String? {
    guard isOn(property) else { return nil }
    if property == .health, MirrorMetric.health.allSatisfy({ settings.sources[$0] == nil || !isPermitted($0) }) {
      return "no value is permitted yet: vehiclectl set \(settings.device).send-steps on, or another send- property"
    }
    // The configured device probably does not exist.
    if property == .weather, MirrorMetric.weather.allSatisfy({ known[$0] == nil }), let reason = missing[.temperature] {
      return "no value yet; \(reason)"
    }
    let message = [isUp ? nil : "pending: starts when the mirror is connected", isUpdating ? pictureRemark : nil].compactMap(\.self)
    return message.isEmpty ? nil : message.joined(separator: "; then ")
  }
}
