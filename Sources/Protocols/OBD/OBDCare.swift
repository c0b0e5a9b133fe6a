// How the vehicle is left alone: what is measured, when polling ends for the car's sake, how the adapter is put to sleep and woken, and
// the words for each. A probe is a measurement and, unless that says no, one request; who answers it is polled again.

extension OBDMachine {
  private static let voltage = Array("ATRV\r".utf8)
  static let lowPower = Array("ATLP\r".utf8)
  private static let measureTakes: Nanoseconds = 15 * .millisecond
  /// Where there is never time for it, it is measured all the same.
  private static let measureLatest: Nanoseconds = 5 * .second

  // MARK: Voltage

  /// Whether it is time to measure, with so much left before the next poll.
  func wantsVoltage(at now: Instant, room: Nanoseconds) -> Bool {
    guard let care, traits.hasVoltage, now >= care.due else { return false }
    return room >= Self.measureTakes || care.due == .min || now &- care.due >= Self.measureLatest
  }

  /// A probe (`isProbe`) goes on with the vehicle.
  mutating func measure(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    state = .measuring(isProbe: isProbe)
    send(Self.voltage, at: now, &effects)
  }

  /// The adapter has told the voltage, `12.4V`, or that it cannot.
  mutating func voltageReplied(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    let line = lines(of: dialogue.reply[dialogue.body...]).first ?? []
    let text = String(decoding: line, as: UTF8.self)
    let volts = text.hasSuffix("V") ? Double(text.dropLast()).flatMap { (0...60).contains($0) ? $0 : nil } : nil
    care?.measured(volts, at: now)
    if let volts {
      publish(.adapterVoltage, .float(volts), &effects)
    } else if ELMLine(line) == .status(.notUnderstood) {
      traits.lacksVoltage()
      withdraw(.adapterVoltage, "the adapter does not report it", &effects)
    } else {
      keepBadReply(dialogue.reply, &effects)
    }
    goOn(isProbe: isProbe, at: now, &effects)
  }

  private mutating func goOn(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    state = .polling
    if care?.isLow(at: now) ?? false, let care {
      withdrawVehicle(care.lowWords, &effects)
      say(lonelyWord(.carAsleep), &effects)
      complain(care.lowWords, &effects)
      return leaveAlone(for: care.pause, at: now)
    }
    if isProbe { pace.begin(at: now) }
  }

  /// A measurement came to nothing.
  mutating func voltageMissed(at now: Instant) {
    care?.measured(nil, at: now)
    state = .polling
  }

  // MARK: Leaving alone

  /// The next question comes so much later; the adapter may sleep until then, if it is long.
  mutating func leaveAlone(for pause: Nanoseconds, at now: Instant) {
    isProbing = true
    state = sleepsAdapter(pause) && questions.isEmpty ? .lulling(until: now &+ pause) : .backingOff(Pause(until: now &+ pause))
  }

  private func sleepsAdapter(_ pause: Nanoseconds) -> Bool {
    care.map { $0.sleepsAdapter && traits.canSleep && pause >= $0.pause } ?? false
  }

  /// The vehicle has answered. If nobody uses it, it is left alone: it would not fall asleep otherwise.
  mutating func restIfIdle(at now: Instant, _ effects: inout Effects) -> Bool {
    guard !signsOfUse.isEmpty, tuning == nil, care?.isIdle(at: now) ?? false, let care else { return false }
    say(lonelyWord(.parked), &effects)
    complain(care.idleWords, &effects)
    withdrawVehicle(care.idleWords, &effects)
    leaveAlone(for: care.pause, at: now)
    return true
  }

  /// The adapter has taken the command to sleep, or does not know it.
  mutating func lullReplied(until: Instant, _ effects: inout Effects) {
    if SetupAnswer(dialogue.reply[dialogue.body...]) == .done { return state = .asleep(until: until) }
    traits.cannotSleep()
    effects.append(.note("the adapter does not support ATLP: it stays awake while the vehicle sleeps"))
    say(silenceWord, &effects)
    state = .backingOff(Pause(until: until))
  }

  /// What a vehicle that does not answer is at, as the voltage tells.
  var silenceWord: StatusWord {
    guard let care, care.volts != nil else { return .carSilent }
    return !care.isInVehicle ? .noCar : care.isCharging ? .carSilent : .carAsleep
  }

  /// The word for a vehicle that is left alone for a full pause.
  func lonelyWord(_ word: StatusWord) -> StatusWord { sleepsAdapter(care?.pause ?? 0) ? .adapterAsleep : word }

  /// How long a vehicle that does not answer is left alone, and the word for it; the pauses grow.
  mutating func nextSilence() -> (pause: Nanoseconds, word: StatusWord, words: String?) {
    guard let care else { return (nextPause(), .carSilent, nil) }
    guard streaks.backOffs >= Self.backOffs(before: care.pause) else { return (nextPause(), silenceWord, nil) }
    streaks.backOffs += 1
    return (care.pause, lonelyWord(silenceWord), care.pauseWords)
  }
}
