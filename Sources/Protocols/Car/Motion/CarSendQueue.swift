// The send queue. A Stop is sent before everything else and at once. Every other command is sent alone, with a pause to the tilts
// before and after it, because the car discards what it reads together with a tilt that it cannot use. Tilts are not queued: only
// the newest one matters.
// Source: autott.md §8 and §9; TCP.py drops the rest of what it read whenever a handler fails.

/// A queued command of one or more messages, of a caller or of the machine itself.
struct CarQueuedCommand: Sendable, Equatable {
  enum Purpose: Sendable, Equatable {
    case greeting, livenessCheck, proceed, status, message, shutDown, connectionTest
    case mode(Int)
    case button(CarSide, Bool)
    case modeInfo(Int)
    case video(Bool)
  }

  private(set) var id: CommandID?
  let purpose: Purpose
  /// The messages that are not sent yet.
  private(set) var messages: [CarOutboundMessage]

  init(_ purpose: Purpose, _ messages: [CarOutboundMessage], for id: CommandID? = nil) {
    (self.purpose, self.messages, self.id) = (purpose, messages, id)
  }

  /// The first message was sent.
  mutating func removeFirst() { messages.removeFirst() }
  /// The caller has disconnected.
  mutating func forgetCaller() { id = nil }
}

/// The queued messages.
struct CarSendQueue: Sendable {
  /// The pause between a command and the tilts before and after it.
  static let pause: Nanoseconds = 50 * .millisecond
  static let stopInterval: Nanoseconds = 60 * .millisecond
  /// The pause between two commands while tilts are streaming, so that tilts are still sent.
  private static let spacing: Nanoseconds = 200 * .millisecond
  static let most = 16

  /// The remaining messages that stop the car.
  private(set) var stops: [CarOutboundMessage] = []
  private(set) var stopDue: Instant = .min
  /// The first one is in flight.
  private var isSendingStop = false
  private(set) var commands: [CarQueuedCommand] = []
  /// Nothing is sent after the last message before then.
  private(set) var quietUntil: Instant = .min
  /// When the last message and the last tilt were sent.
  private var messageAt: Instant = .min
  private var tiltAt: Instant = .min
  private var lastWasStop = false
  /// The first message of the first command is in flight.
  private var isInFlight = false

  // MARK: Stop

  /// Queues the messages that stop the car, the first one for now, unless a Stop was the last message sent.
  mutating func stop(_ messages: [CarOutboundMessage], at now: Instant) {
    stops = messages
    isSendingStop = false
    stopDue = lastWasStop ? max(now, quietUntil) : now
  }

  /// The first one is passed to the link.
  mutating func takeStop() -> CarOutboundMessage? {
    isSendingStop = !stops.isEmpty
    return stops.first
  }

  /// The link has accepted a stop message, or it must be repeated. One that was sent before the latest request to stop does not
  /// count.
  mutating func stopAccepted(_ failure: String?, at now: Instant) {
    if failure == nil, isSendingStop { stops.removeFirst() }
    isSendingStop = false
    stopDue = now &+ Self.stopInterval
  }

  // MARK: Queued commands

  var hasRoom: Bool { commands.count < Self.most }
  func contains(_ purpose: CarQueuedCommand.Purpose) -> Bool { commands.contains { $0.purpose == purpose } }
  var containsModeInfo: Bool { commands.contains { if case .modeInfo = $0.purpose { true } else { false } } }
  /// The next command is Continue.
  var isContinueNext: Bool { commands.first?.purpose == .proceed }

  /// False if the queue is full.
  mutating func add(_ queued: CarQueuedCommand) -> Bool {
    guard hasRoom else { return false }
    commands.append(queued)
    return true
  }

  /// Queues a command that must not be dropped: there are never more of them than buttons.
  mutating func addAlways(_ queued: CarQueuedCommand) { commands.append(queued) }

  /// Queues a command before all others, except for one whose message is in flight.
  mutating func addFirst(_ queued: CarQueuedCommand) { commands.insert(queued, at: isInFlight ? 1 : 0) }

  /// Passes the first message of the first command to the link.
  mutating func takeCommand() -> CarOutboundMessage? {
    guard let message = commands.first?.messages.first else { return nil }
    isInFlight = true
    return message
  }

  /// The link has accepted it: returns the command if this was its last message; nil also if the command was removed meanwhile.
  mutating func commandAccepted() -> CarQueuedCommand? {
    guard isInFlight, !commands.isEmpty else { return nil }
    isInFlight = false
    commands[0].removeFirst()
    return commands[0].messages.isEmpty ? commands.removeFirst() : nil
  }

  /// The link failed: returns the command.
  mutating func commandFailed() -> CarQueuedCommand? {
    guard isInFlight, !commands.isEmpty else { return nil }
    isInFlight = false
    return commands.removeFirst()
  }

  /// Removes commands; a message in flight is sent nevertheless.
  mutating func remove(where isGone: (CarQueuedCommand) -> Bool) -> [CarQueuedCommand] {
    let gone = commands.filter(isGone)
    if let first = commands.first, isGone(first) { isInFlight = false }
    commands.removeAll(where: isGone)
    return gone
  }

  /// The same, except for the command whose message is in flight.
  mutating func removeWaiting(where isGone: (CarQueuedCommand) -> Bool) -> [CarQueuedCommand] {
    guard isInFlight else { return remove(where: isGone) }
    let inFlight = commands.removeFirst()
    let gone = commands.filter(isGone)
    commands.removeAll(where: isGone)
    commands.insert(inFlight, at: 0)
    return gone
  }

  mutating func forget(_ id: CommandID) {
    for index in commands.indices where commands[index].id == id { commands[index].forgetCaller() }
  }

  /// When the next message of the first command is due, apart from the pause after the last tilt: from then on no tilt is sent.
  func turn(isStreaming: Bool) -> Instant? {
    if commands.isEmpty { return nil }
    return isStreaming && messageAt != .min ? max(quietUntil, messageAt &+ Self.spacing) : quietUntil
  }

  /// When the pause after the last tilt is over.
  var tiltsAreThrough: Instant { tiltAt == .min ? .min : tiltAt &+ Self.pause }

  // MARK: Sent messages

  /// A message was passed to the link, or accepted by it.
  mutating func messageSent(isStop: Bool, at now: Instant) {
    (messageAt, lastWasStop) = (now, isStop)
    quietUntil = now &+ (isStop ? Self.stopInterval : Self.pause)
  }

  mutating func tiltSent(at now: Instant) { (tiltAt, lastWasStop) = (now, false) }

  /// Resets the queue for a new link: returns the waiting commands.
  mutating func reset() -> [CarQueuedCommand] {
    defer { self = CarSendQueue() }
    return commands
  }
}
