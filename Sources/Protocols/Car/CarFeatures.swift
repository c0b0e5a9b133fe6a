// Routes between the send queue and the status, the modes, the camera and the settings.

extension CarMachine {
  mutating func restore(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    restoreStanding(stored, &effects)
    reader.start(&effects)
    camera.start(&effects)
    settings.restore(stored, &effects)
  }

  // MARK: Status

  /// When the next request may be sent; nil: not now, because the car is driven, the camera starts, or something else is first.
  var statusDue: Instant? {
    session.isReady && !driving.isHeld && camera.isQuiet && queue.commands.isEmpty ? status.due : nil
  }

  mutating func pollStatus(at now: Instant, _ effects: inout Effects) {
    if let due = statusDue, now >= due { _ = queue.add(CarQueuedCommand(.status, [.status])) }
  }

  mutating func expireStatus(at now: Instant, _ effects: inout Effects) {
    guard status.isOverdue(at: now) else { return }
    reader.note("no response to Status", at: now, &effects)
    status.expire(&effects)
  }

  mutating func refresh(for id: CommandID, _ effects: inout Effects) {
    if driving.isHeld { return effects.fail(command: id, CarStatus.notWhileDriven) }
    if !status.join(id) { _ = add(CarQueuedCommand(.status, [.status], for: id), &effects) }
  }

  /// Drops requests that were queued before driving started.
  mutating func dropStatusRequests(_ effects: inout Effects) {
    guard driving.isHeld, queue.commands.contains(where: { $0.purpose == .status }) else { return }
    for queued in queue.removeWaiting(where: { $0.purpose == .status }) { effects.fail(command: queued.id, CarStatus.notWhileDriven) }
  }

  // MARK: Modes

  mutating func pursueInquiry(_ effects: inout Effects) {
    guard session.isReady, let next = modeQuery.advance(modes, &effects) else { return }
    let isQueued = queue.commands.contains { if case .modeInfo = $0.purpose { true } else { false } }
    if !isQueued { _ = queue.add(CarQueuedCommand(.modeInfo(next), [.infoModes(next)])) }
  }

  // MARK: Camera

  mutating func switchVideo(_ isOn: Bool, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    guard isOn else {
      _ = add(CarQueuedCommand(.video(false), [.videoStream(false)], for: id), &effects)
      return
    }
    if let reply = camera.reply(isDriven: driving.isHeld) { return effects.append(.complete(id, reply)) }
    guard queue.add(CarQueuedCommand(.video(true), [.videoQuality(settings.quality), .videoStream(true)])) else {
      return effects.refuse(command: id, code: "busy", "too many queued commands: try again later")
    }
    camera.begin(for: id, at: now, &effects)
  }

  mutating func cameraLinkChanged(_ change: LinkState, at now: Instant, _ effects: inout Effects) {
    if let request = camera.linkChanged(change, at: now, &effects) { effects.send(.video, request, drawSendID()) }
  }

  mutating func pictureCame(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .retry(let message) = camera.received(bytes, &effects) else { return }
    reader.note("the camera's server: \(message)", at: now, &effects)
    camera.retry(at: now, &effects)
  }

  mutating func expireCamera(at now: Instant, _ effects: inout Effects) {
    guard camera.expire(at: now, &effects) else { return }
    // Waiting commands must not succeed, because the car may have ignored them.
    for queued in queue.remove(where: { _ in true }) {
      let message = "no picture from the camera, and the car may ignore commands: wait until it responds, or restart its program"
      effects.refuse(command: queued.id, code: "no-picture", message)
    }
    queue.addAlways(CarQueuedCommand(.video(false), [.videoStream(false)]))
    queue.addAlways(CarQueuedCommand(.greeting, [.modes]))
  }
}
