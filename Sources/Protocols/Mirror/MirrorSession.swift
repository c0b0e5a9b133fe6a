// What is said to the mirror over one connection, and in which order. The next word follows from what the mirror was told and
// what it is to know: Connected, the name, then values, the name once more at the head of each flush. What waits is one message
// a tag, for only the last counts. It must never say a value before a name was acknowledged.
// Facts: ISM-App's BLE.swift; main.cpp: data without a name goes to a bogus profile and may begin to take pictures.

/// A value that the mirror is to be told, and who waits for that.
struct MirrorParcel: Sendable {
  let message: MirrorMessage
  /// nil: it is the light.
  let metric: MirrorMetric?
  let value: Value
  var commands: [CommandID] = []
  /// Whom the mirror was to greet when it was known.
  var name: String?

  /// What is shown of it once it was acknowledged.
  var signal: MirrorSignal { metric?.sent ?? .sentLED }
}

/// One connection.
struct MirrorSession: Sendable {
  enum Word: Sendable {
    case greeting
    case name(String)
    /// The second half of a renaming, as the app does it: the old name is said before.
    case newName(String)
    case value(MirrorParcel)
  }

  /// A write that is not acknowledged.
  struct Writing: Sendable {
    let word: Word
    let id: SendID
    let at: Instant
    let isRepeated: Bool
  }

  private(set) var isGreeted = false
  /// The name that the mirror has, as far as it was acknowledged.
  private(set) var told: String?
  /// This flush began with the name.
  private var isNamed = false
  private var outbox: [MirrorParcel] = []
  private(set) var writing: Writing?
  /// A word that was refused, and when it is said once more.
  private var repeating: (word: Word, at: Instant)?
  var reading: MirrorReading

  /// How long the mirror may take to acknowledge.
  static let timeout: Nanoseconds = 5 * .second
  private static let breath: Nanoseconds = 500 * .millisecond

  init(_ reading: MirrorReading) { self.reading = reading }

  /// Nothing that was said waits to be acknowledged.
  var isAcknowledged: Bool { writing == nil && repeating == nil }

  func nextWake(for username: String?) -> Instant? {
    if let moment = writing.map({ $0.at &+ Self.timeout }) ?? repeating?.at { return moment }
    return reading.mayLackHeart || isHeldBack(username) ? reading.end : nil
  }

  /// Another name is to be said, once the display has read what was written under the one before.
  private func isHeldBack(_ username: String?) -> Bool {
    guard isGreeted, let username, told != username else { return false }
    return reading.holdsBack(username)
  }

  /// The last value for its tag and name is the one that counts; whoever waited for the one before waits for this.
  mutating func put(_ parcel: MirrorParcel) {
    var parcel = parcel
    if let index = outbox.firstIndex(where: { $0.message.tag == parcel.message.tag && $0.name == parcel.name }) {
      parcel.commands = outbox.remove(at: index).commands + parcel.commands
    }
    outbox.append(parcel)
  }

  /// Whether a message of this command is yet to be acknowledged.
  func owes(_ command: CommandID) -> Bool {
    let spoken = [writing?.word, repeating?.word].compactMap(\.self)
    return outbox.contains { $0.commands.contains(command) }
      || spoken.contains { if case .value(let parcel) = $0 { parcel.commands.contains(command) } else { false } }
  }

  /// The mirror has this name, and no other is on its way.
  func has(_ name: String) -> Bool {
    let isChanging = [writing?.word, repeating?.word].contains { if case .newName = $0 { true } else { false } }
    return told == name && !isChanging
  }

  /// What is to be said next to a mirror of this user; nil: nothing. It is written as this send.
  mutating func next(for username: String?, as id: SendID, at now: Instant) -> MirrorMessage? {
    guard writing == nil else { return nil }
    if let (word, moment) = repeating {
      guard now >= moment else { return nil }
      repeating = nil
      return write(word, as: id, at: now, isRepeated: true)
    }
    guard isGreeted else { return write(.greeting, as: id, at: now) }
    guard let username else { return nil }
    // What was known before another name was set belongs to the name before.
    if let told, told != username, let index = outbox.firstIndex(where: { $0.name == told }) {
      return write(isNamed ? .value(outbox.remove(at: index)) : .name(told), as: id, at: now)
    }
    guard !isHeldBack(username) || reading.isOver(at: now) else { return nil }
    guard let told else { return write(.name(username), as: id, at: now) }
    if told != username { return write(isNamed ? .newName(username) : .name(told), as: id, at: now) }
    guard !outbox.isEmpty else {
      isNamed = false
      return nil
    }
    return write(isNamed ? .value(outbox.removeFirst()) : .name(told), as: id, at: now)
  }

  private mutating func write(_ word: Word, as id: SendID, at now: Instant, isRepeated: Bool = false) -> MirrorMessage? {
    guard let message = word.message else { return nil }
    writing = Writing(word: word, id: id, at: now, isRepeated: isRepeated)
    if word.isValue { reading.wrote(message.tag, under: told, at: now) }
    return message
  }

  /// The mirror has acknowledged the write.
  mutating func acknowledged(_ word: Word, at now: Instant) {
    writing = nil
    switch word {
    case .greeting: isGreeted = true
    case .name(let name), .newName(let name): (told, isNamed) = (name, true)
    case .value: reading.arrived(at: now)
    }
  }

  /// The write has failed; it is tried once more.
  mutating func failed(_ word: Word, at now: Instant) {
    writing = nil
    repeating = (word, now &+ Self.breath)
  }
}

extension MirrorSession.Word {
  /// nil: no message can be made of it, which is checked before.
  var message: MirrorMessage? {
    switch self {
    case .greeting: .connected
    case .name(let name): try? MirrorMessage(.name, name)
    case .newName(let name): try? MirrorMessage(.newName, name)
    case .value(let parcel): parcel.message
    }
  }

  var isValue: Bool { if case .value = self { true } else { false } }
}
