// The messages of one connection and their order: Connected, the name, then values, with the name repeated before each group of values.
// The next message depends on what the mirror has acknowledged. Only the last value per tag is queued. A value must never be sent before
// the mirror has acknowledged a name.
// Source: ISM-App's BLE.swift; main.cpp: a value without a name is filed under a bogus profile, and may make the mirror take pictures.

/// A value to send, and the commands that wait for it.
struct MirrorPendingValue: Sendable {
  let message: MirrorMessage
  /// The metric of the value; nil for the brightness of the light.
  let metric: MirrorMetric?
  let value: Value
  var commands: [CommandID] = []
  /// The name that was in effect when the value was collected.
  var name: String?

  /// The property that is published after the acknowledgement.
  var sentProperty: MirrorProperty { metric?.sentProperty ?? .sentLED }
}

/// The session of one connection.
struct MirrorSession: Sendable {
  enum Step: Sendable {
    case greeting
    case name(String)
    /// The new name when the name is changed. As in the app, the old name is sent before it.
    case newName(String)
    case value(MirrorPendingValue)
  }

  /// A write without an acknowledgement.
  struct WriteInFlight: Sendable {
    let step: Step
    let id: SendID
    let sentAt: Instant
    let isRetry: Bool
  }

  private(set) var isGreeted = false
  /// The last acknowledged name.
  private(set) var acknowledgedName: String?
  /// Whether the name was sent before the current group of values.
  private var isNamed = false
  private var queue: [MirrorPendingValue] = []
  private(set) var writeInFlight: WriteInFlight?
  /// A failed message, and when it is sent again.
  private var retry: (step: Step, at: Instant)?
  var readWindow: DisplayReadWindow

  /// The timeout of an acknowledgement.
  static let timeout: Nanoseconds = 5 * .second
  private static let retryDelay: Nanoseconds = 500 * .millisecond

  init(_ readWindow: DisplayReadWindow) { self.readWindow = readWindow }

  /// Whether every sent message was acknowledged.
  var isAcknowledged: Bool { writeInFlight == nil && retry == nil }

  func nextWake(for username: String?) -> Instant? {
    if let moment = writeInFlight.map({ $0.sentAt &+ Self.timeout }) ?? retry?.at { return moment }
    return readWindow.hasPossiblyMissedHeartRate || isHeldBack(username) ? readWindow.end : nil
  }

  /// Whether a different name must be sent, but only after the display has read the values under the previous name.
  private func isHeldBack(_ username: String?) -> Bool {
    guard isGreeted, let username, acknowledgedName != username else { return false }
    return readWindow.holdsBack(username)
  }

  /// Queues a value. It replaces an earlier value with the same tag and name, whose commands then wait for the new value.
  mutating func enqueue(_ pendingValue: MirrorPendingValue) {
    var pendingValue = pendingValue
    if let index = queue.firstIndex(where: { $0.message.tag == pendingValue.message.tag && $0.name == pendingValue.name }) {
      pendingValue.commands = queue.remove(at: index).commands + pendingValue.commands
    }
    queue.append(pendingValue)
  }

  /// Whether a message of this command has not been acknowledged yet.
  func hasPending(_ command: CommandID) -> Bool {
    let inFlight = [writeInFlight?.step, retry?.step].compactMap(\.self)
    return queue.contains { $0.commands.contains(command) }
      || inFlight.contains { if case .value(let pendingValue) = $0 { pendingValue.commands.contains(command) } else { false } }
  }

  /// Whether the mirror has acknowledged this name, and no other one is in flight.
  func hasAcknowledged(_ name: String) -> Bool {
    let isChanging = [writeInFlight?.step, retry?.step].contains { if case .newName = $0 { true } else { false } }
    return acknowledgedName == name && !isChanging
  }

  /// Returns the next message for a mirror with this user name, or nil, and records its write with this send ID.
  mutating func nextMessage(for username: String?, as id: SendID, at now: Instant) -> MirrorMessage? {
    guard writeInFlight == nil else { return nil }
    if let (step, moment) = retry {
      guard now >= moment else { return nil }
      retry = nil
      return write(step, as: id, at: now, isRetry: true)
    }
    guard isGreeted else { return write(.greeting, as: id, at: now) }
    guard let username else { return nil }
    // Values that were collected under an earlier name belong to that name.
    if let acknowledgedName, acknowledgedName != username, let index = queue.firstIndex(where: { $0.name == acknowledgedName }) {
      return write(isNamed ? .value(queue.remove(at: index)) : .name(acknowledgedName), as: id, at: now)
    }
    guard !isHeldBack(username) || readWindow.hasEnded(at: now) else { return nil }
    guard let acknowledgedName else { return write(.name(username), as: id, at: now) }
    if acknowledgedName != username { return write(isNamed ? .newName(username) : .name(acknowledgedName), as: id, at: now) }
    guard !queue.isEmpty else {
      isNamed = false
      return nil
    }
    return write(isNamed ? .value(queue.removeFirst()) : .name(acknowledgedName), as: id, at: now)
  }

  private mutating func write(_ step: Step, as id: SendID, at now: Instant, isRetry: Bool = false) -> MirrorMessage? {
    guard let message = step.message else { return nil }
    writeInFlight = WriteInFlight(step: step, id: id, sentAt: now, isRetry: isRetry)
    if step.isValue { readWindow.valueWritten(message.tag, under: acknowledgedName, at: now) }
    return message
  }

  /// Handles the acknowledgement of the write.
  mutating func acknowledged(_ step: Step, at now: Instant) {
    writeInFlight = nil
    switch step {
    case .greeting: isGreeted = true
    case .name(let name), .newName(let name): (acknowledgedName, isNamed) = (name, true)
    case .value: readWindow.valueAcknowledged(at: now)
    }
  }

  /// Handles a failed write, which is retried once.
  mutating func failed(_ step: Step, at now: Instant) {
    writeInFlight = nil
    retry = (step, now &+ Self.retryDelay)
  }
}

extension MirrorSession.Step {
  /// The message; nil if the mirror cannot handle the name. Names are checked when they are set.
  var message: MirrorMessage? {
    switch self {
    case .greeting: .connected
    case .name(let name): try? MirrorMessage(.name, name)
    case .newName(let name): try? MirrorMessage(.newName, name)
    case .value(let pendingValue): pendingValue.message
    }
  }

  var isValue: Bool { if case .value = self { true } else { false } }
}
