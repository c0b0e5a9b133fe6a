// What the machine does when its link comes and goes, and how a session begins and ends: the greeting, a car that does not
// answer because somebody else holds it, the last words. It must never leave the car without Stop and Disconnect while it
// can speak: a car that was left otherwise drives on, and takes no other client until a person restarts its program.
// Facts: autott.md §7; the car attaches its receivers half a second after it accepts, and serves one client at a time.

extension CarMachine {
  static let silence =
    "connected but silent: another client holds the car, or it was left without Disconnect; it may still be driving; "
    + "end the other client, or restart the car's program by hand"

  /// The kernel would not tell for a long time.
  static let lost = "the car does not answer any more: is it out of reach, or switched off?"

  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    if isUp { linkWentDown("the link was opened again", at: now, &effects) }
    modes = CarModes()
    // As built it tells its modes twice when somebody comes.
    settling = CarSettling(unasked: options.dialect == .asBuilt ? 2 : 0)
    if options.dialect == .asBuilt { modes.current = 0 }
    state = .greeting(until: now &+ Self.greetingTimeout)
    // Whoever was confirmed to stand may be driven by another client by now.
    if standing == .confirmed { standing = .unknown }
    sayWhatIsKnown(&effects)
    pulse = CarPulse()
    if owesStop || standing == .driven { outbox.stop([.stop], at: now) }
    _ = outbox.add(CarErrand(.greeting, [.modes]))
    if options.dialect == .asBuilt { _ = outbox.add(CarErrand(.greeting, [.mainViewEntered])) }
  }

  /// The car speaks: it is ours, and made to stand whatever it did before.
  mutating func heardTheCar(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .greeting, .silent: break
    case .ready:
      if status.isUnanswered { publish(.connected, .bool(true), &effects) }
      return status.heard()
    case .down, .ending: return
    }
    state = .ready
    publish(.connected, .bool(true), &effects)
    sayWhatItBeganWith(&effects)
    sayMotion(&effects)
    status.begin(at: now)
    outbox.stop(stopWords(1), at: now)
    settling.stopped()
  }

  mutating func fellSilent(_ effects: inout Effects) {
    state = .silent
    if standing != .driven { standing = .silent }
    publish(.connected, .bool(false), &effects)
    sayWhatIsNotKnown(Self.silence, &effects)
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if isEnding { return finish(&effects) }
    drop(reason, at: now, &effects)
  }

  /// The link is of no use as it is.
  mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    drop(reason, at: now, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func drop(_ reason: String, at now: Instant, _ effects: inout Effects) {
    guard isUp else {
      state = .down(reason)
      return sayMotion(&effects)
    }
    if driving.isHeld { loseLease(reason, at: now, &effects) }
    // What could not be said any more is the first thing to say when the link is back.
    owesStop = owesStop || !outbox.stops.isEmpty
    failEverything(.notConnected(reason), &effects)
    state = .down(reason)
    sayMotion(&effects)
  }

  /// Nobody is waited for any more.
  private mutating func failEverything(_ error: CommandError, _ effects: inout Effects) {
    for errand in outbox.reset() { if let id = errand.id { effects.append(.complete(id, .failure(error))) } }
    for waiter in stopping { effects.append(.complete(waiter.id, .failure(unconfirmed(error)))) }
    stopping = []
    failStatus(error, &effects)
    failInquiry(error, &effects)
    failCamera(error, &effects)
    test = CarConnectionTest()
    decoder.reset()
    driving.forgetCar()
    buttons = CarButtons()
    (sending, willManner) = (nil, nil)
  }

  // MARK: The end

  /// The daemon stops, or a person disconnects the car: Stop, Stop, Disconnect.
  mutating func end(at now: Instant, _ effects: inout Effects) {
    let reason = "the link is being closed"
    guard isUp else { return effects.append(.stopped) }
    if isEnding { return }
    if driving.isHeld { loseLease(reason, at: now, &effects) }
    // What the link holds is still awaited.
    let outstanding = sending
    failEverything(.notConnected(reason), &effects)
    sending = outstanding
    halt(.notConnected(reason), times: 2, at: now, &effects)
    state = .ending(until: now &+ Self.endTimeout)
  }

  /// Nothing more can be said, or needs to be: the car wants the link closed at once.
  mutating func finish(_ effects: inout Effects) {
    failEverything(.notConnected("the link is being closed"), &effects)
    owesStop = false
    state = .down("the link is being closed")
    sayMotion(&effects)
    effects.append(.stopped)
  }

  // MARK: What is shown

  /// What a new link knows of the car.
  private mutating func sayWhatIsKnown(_ effects: inout Effects) {
    publish(.connected, .bool(false), &effects)
    sayWhatIsNotKnown("the car has not answered yet", &effects)
    withdraw(.modes, "the car has not told its modes yet", &effects)
    sayTiltRate(&effects)
    for index in status.places { effects.withdraw(index, "the car has not been asked for its status yet") }
  }

  /// Until the car has spoken it may be in any state: it may serve another client.
  private mutating func sayWhatIsNotKnown(_ reason: String, _ effects: inout Effects) {
    sayMotion(&effects)
    for signal in [CarSignal.mode, .modeNumber, .leftButton, .rightButton, .buttonsEnabled, .speechEnabled, .video] {
      withdraw(signal, reason, &effects)
    }
  }

  /// A car that speaks to us is a program that has just begun.
  private mutating func sayWhatItBeganWith(_ effects: inout Effects) {
    sayMode(&effects)
    for side in CarSide.allCases { publish(side.signal, .bool(false), &effects) }
    for signal in [CarSignal.buttonsEnabled, .speechEnabled, .video] {
      if options.dialect == .asBuilt { publish(signal, .bool(false), &effects) } else { withdraw(signal, "the car has not said", &effects) }
    }
  }

  /// Why a Stop was not confirmed.
  private func unconfirmed(_ error: CommandError) -> CommandError {
    if case .notConnected(let reason) = error { .notConnected("\(Self.unconfirmed); \(reason)") } else { error }
  }

  /// Tells the state and the trouble, where they are news.
  mutating func report(_ effects: inout Effects) {
    let now: (word: String, fault: String?) =
      switch state {
      case .down: ("waiting", leftMoving)
      case .greeting: ("greeting", leftMoving)
      case .silent: ("silent", Self.silence)
      case .ending: ("stopping", nil)
      case .ready where trouble != nil && standing != .confirmed: ("unconfirmed", trouble)
      case .ready where status.isUnanswered: ("silent", Self.lost)
      case .ready:
        camera.isStarting
          ? ("starting-camera", nil) : (driving.isHeld ? "driving" : "ready", camera.trouble ?? trouble.map { _ in Self.lost })
      }
    if now.word != word { effects.append(.status(now.word)) }
    if now.fault != fault { effects.append(.fault(now.fault)) }
    (word, fault) = now
  }
}
