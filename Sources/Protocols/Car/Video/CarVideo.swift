// Switches the camera's stream on and off, and fetches the first picture from its server over a separate link.

extension CarMachine {
  mutating func switchVideo(_ isOn: Bool, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    func refuse(_ code: String, _ message: String) { effects.append(.complete(id, .failure(.refused(code: code, message)))) }
    guard isOn else {
      _ = add(CarQueuedCommand(.video(false), [.videoStream(false)], for: id), &effects)
      return
    }
    if driving.isHeld {
      return refuse("driving", "the car is being driven and would ignore Stop while its camera starts: switch it on afterwards")
    }
    if case .on = camera { return effects.append(.complete(id, .success(Report()))) }
    if camera.isStarting { return refuse("busy", "the camera is starting already") }
    if options.dialect == .asBuilt, options.place == nil {
      return refuse(
        "no-host", "the first picture cannot be fetched, because the link has no host and port: use tcp:HOST:PORT")
    }
    guard add(CarQueuedCommand(.video(true), [.videoQuality(settings.quality), .videoStream(true)]), &effects) else {
      return refuse("busy", "too many queued commands: try again later")
    }
    camera = .starting(CarCameraStart(for: id, at: now))
    withdraw(.video, "the camera is starting", &effects)
  }

  /// VideoStream On is sent: from now on the car ignores commands until its first picture is fetched.
  mutating func openCamera(at now: Instant, _ effects: inout Effects) {
    guard options.dialect == .asBuilt, case .starting(var start) = camera else { return }
    start.deadline = now &+ CarCameraStart.timeout
    tryCamera(&start, at: now, &effects)
    camera = .starting(start)
  }

  private func tryCamera(_ start: inout CarCameraStart, at now: Instant, _ effects: inout Effects) {
    guard let place = options.place else { return }
    start.reader = MotionJPEG()
    start.step = .connecting(until: now &+ CarCameraStart.connectTimeout)
    effects.append(.openLink(.video, url: place.link))
  }

  /// The link has accepted VideoStream. As documented there is nothing else to wait for.
  mutating func videoSwitched(_ isOn: Bool, for id: CommandID?, _ effects: inout Effects) {
    var id = id
    switch camera {
    case .starting(let start):
      guard isOn, options.dialect == .documented else { break }
      camera = .on
      id = start.id
    case .on, .off: camera = isOn ? .on : .off
    // It is off, but whether the car accepts commands is unknown.
    case .stuck: break
    }
    if !camera.isStarting { publish(.video, .bool(isOn), &effects) }
    if let id { effects.append(.complete(id, .success(Report()))) }
  }

  // MARK: The first picture

  mutating func cameraLinkChanged(_ change: LinkState, at now: Instant, _ effects: inout Effects) {
    guard case .starting(var start) = camera, let place = options.place else { return }
    switch (change, start.step) {
    case (.up, .connecting):
      start.step = .reading(until: now &+ CarCameraStart.readTimeout)
      effects.send(.video, MotionJPEG.request(host: place.authority, path: CarEndpoint.videoPath), drawSendID())
      camera = .starting(start)
    case (.down, .connecting), (.down, .reading): retryCamera(start, at: now, &effects)
    default: break
    }
  }

  mutating func pictureCame(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .starting(var start) = camera, case .reading = start.step else { return }
    switch start.reader.take(bytes).first {
    case .frame: cameraStarted(start, &effects)
    case .failed(let message):
      reader.note("the camera's server: \(message)", at: now, &effects)
      retryCamera(start, at: now, &effects)
    case nil: camera = .starting(start)
    }
  }

  private mutating func cameraStarted(_ start: CarCameraStart, _ effects: inout Effects) {
    camera = .on
    effects.append(.closeLink(.video))
    publish(.video, .bool(true), &effects)
    if let id = start.id { effects.append(.complete(id, .success(Report()))) }
  }

  /// The server closed the connection, or has no picture yet.
  private mutating func retryCamera(_ start: CarCameraStart, at now: Instant, _ effects: inout Effects) {
    var start = start
    start.step = .resting(until: now &+ CarCameraStart.rest)
    effects.append(.closeLink(.video))
    camera = .starting(start)
  }

  mutating func expireCamera(at now: Instant, _ effects: inout Effects) {
    guard case .starting(var start) = camera else { return }
    if let deadline = start.deadline, now >= deadline { return giveCameraUp(start, &effects) }
    if let due = start.tellDue, now >= due, let id = start.id {
      start.told = Int((now &- start.begun) / CarCameraStart.tellInterval)
      let seconds = (now &- start.begun) / .second
      let part = Double(now &- start.begun) / Double(CarCameraStart.timeout)
      effects.append(.progress(id, Report(text: "camera starting: \(seconds) s", progress: min(max(part, 0), 1))))
      camera = .starting(start)
    }
    guard let due = start.step.due, now >= due else { return }
    if case .resting = start.step {
      tryCamera(&start, at: now, &effects)
      camera = .starting(start)
    } else {
      retryCamera(start, at: now, &effects)
    }
  }

  /// No picture arrived. Its next response shows whether the car accepts commands.
  private mutating func giveCameraUp(_ start: CarCameraStart, _ effects: inout Effects) {
    camera = .stuck
    effects.append(.closeLink(.video))
    withdraw(.video, "no picture from the camera", &effects)
    if let id = start.id { effects.append(.complete(id, .failure(.timeout(milliseconds: Int(CarCameraStart.timeout / .millisecond))))) }
    // Waiting commands must not succeed, because the car may have ignored them.
    for queued in queue.remove(where: { _ in true }) {
      let message = "no picture from the camera, and the car may ignore commands: wait until it responds, or restart its program"
      if let id = queued.id { effects.append(.complete(id, .failure(.refused(code: "no-picture", message)))) }
    }
    queue.addAlways(CarQueuedCommand(.video(false), [.videoStream(false)]))
    queue.addAlways(CarQueuedCommand(.greeting, [.modes]))
  }

  /// The link to the car is lost, or is to be closed.
  mutating func failCamera(_ error: CommandError, _ effects: inout Effects) {
    if case .starting(let start) = camera {
      if start.step.isFetching { effects.append(.closeLink(.video)) }
      withdraw(.video, "the camera did not start", &effects)
      if let id = start.id { effects.append(.complete(id, .failure(error))) }
    }
    camera = .off
  }
}
