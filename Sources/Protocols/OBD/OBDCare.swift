// Pausing of polling: voltage measurement, the end of polling, sleep and wake-up of the adapter, and the messages. A probe is a measurement
// and, if the voltage allows, one request; a response resumes polling.

extension OBDMachine {
  private static let voltage = Array("ATRV\r".utf8)
  static let lowPower = Array("ATLP\r".utf8)
  private static let measureTakes: Nanoseconds = 15 * .millisecond
  /// The maximum age of a measurement before it is forced.
  private static let measureLatest: Nanoseconds = 5 * .second

  // MARK: Voltage

  /// Whether a measurement is due and fits into the time before the next poll.
  func wantsVoltage(at now: Instant, room: Nanoseconds) -> Bool {
    guard let care, traits.hasVoltage, now >= care.due else { return false }
    return room >= Self.measureTakes || care.due == .min || now &- care.due >= Self.measureLatest
  }

  /// Measures the voltage; after a probe's measurement (`isProbe`) comes a request.
  mutating func measure(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    state = .measuring(isProbe: isProbe)
    send(Self.voltage, at: now, &effects)
  }

  /// Handles the voltage, `12.4V`, or that it is not supported.
  mutating func voltageReplied(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    let line = lines(of: dialogue.reply[dialogue.body...]).first ?? []
    let text = String(decoding: line, as: UTF8.self)
    let volts = text.hasSuffix("V") ? Double(text.dropLast()).flatMap { (0...60).contains($0) ? $0 : nil } : nil
    care?.measured(volts, at: now)
    if let volts {
      values.publish(.adapterVoltage, .float(volts), &effects)
    } else if ELMLine(line) == .status(.notUnderstood) {
      traits.lacksVoltage()
      values.withdraw(.adapterVoltage, "the adapter does not report it", &effects)
    } else {
      values.countBadReply(dialogue.reply, &effects)
    }
    goOn(isProbe: isProbe, at: now, &effects)
  }

  private mutating func goOn(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    state = .polling
    if care?.isLow(at: now) ?? false, let care {
      withdrawVehicle(care.lowWords, &effects)
      values.publish(status: lonelyWord(.carAsleep), &effects)
      values.publish(fault: care.lowWords, &effects)
      return leaveAlone(for: care.pause, at: now)
    }
    if isProbe { pace.begin(at: now) }
  }

  /// Handles a failed measurement.
  mutating func voltageMissed(at now: Instant) {
    care?.measured(nil, at: now)
    state = .polling
  }

  // MARK: Pausing

  /// Delays the next probe; the adapter may sleep meanwhile if the pause is long.
  mutating func leaveAlone(for pause: Nanoseconds, at now: Instant) {
    isProbing = true
    state = sleepsAdapter(pause) && questions.isEmpty ? .lulling(until: now &+ pause) : .backingOff(Pause(until: now &+ pause))
  }

  private func sleepsAdapter(_ pause: Nanoseconds) -> Bool {
    care.map { $0.sleepsAdapter && traits.canSleep && pause >= $0.pause } ?? false
  }

  /// Pauses polling of an unused vehicle after a response, so that it can fall asleep.
  mutating func restIfIdle(at now: Instant, _ effects: inout Effects) -> Bool {
    guard values.hasSignsOfUse, tuning == nil, care?.isIdle(at: now) ?? false, let care else { return false }
    values.publish(status: lonelyWord(.parked), &effects)
    values.publish(fault: care.idleWords, &effects)
    withdrawVehicle(care.idleWords, &effects)
    leaveAlone(for: care.pause, at: now)
    return true
  }

  /// The adapter has accepted the sleep command, or does not support it.
  mutating func lullReplied(until: Instant, _ effects: inout Effects) {
    if SetupAnswer(dialogue.reply[dialogue.body...]) == .done { return state = .asleep(until: until) }
    traits.cannotSleep()
    effects.append(.note("the adapter does not support ATLP: it stays awake while the vehicle sleeps"))
    values.publish(status: silenceWord, &effects)
    state = .backingOff(Pause(until: until))
  }

  /// The state of a vehicle that does not respond, by its voltage.
  var silenceWord: ValueTable.StatusWord {
    guard let care, care.volts != nil else { return .carSilent }
    return !care.isInVehicle ? .noCar : care.isCharging ? .carSilent : .carAsleep
  }

  /// The state while polling is paused.
  func lonelyWord(_ word: ValueTable.StatusWord) -> ValueTable.StatusWord { sleepsAdapter(care?.pause ?? 0) ? .adapterAsleep : word }

  /// The length of the pause, and the state, for a vehicle that does not respond; pauses grow.
  mutating func nextSilence() -> (pause: Nanoseconds, word: ValueTable.StatusWord, message: String?) {
    guard let care else { return (nextPause(), .carSilent, nil) }
    guard errors.backOffs >= Self.backOffs(before: care.pause) else { return (nextPause(), silenceWord, nil) }
    errors.backOffs += 1
    return (care.pause, lonelyWord(silenceWord), care.pauseWords)
  }
}
