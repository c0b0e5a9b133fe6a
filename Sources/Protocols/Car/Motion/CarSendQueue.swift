// The send queue. Stop is sent immediately, before everything else. Every other command is sent alone, with a pause before and after it,
// because the car discards the rest of what it has read if the handler of a command fails. Tilts are not queued, because only the newest
// one matters.
// Source: AutoTT, TCP.py.

/// A queued command, which consists of one or more messages. `id` is nil if the machine itself has queued the command.
struct CarQueuedCommand: Sendable, Equatable {
  enum Purpose: Sendable, Equatable {
    /// MainView, sent at the start of a session, or a request for the list of modes, sent then and to confirm commands.
    case greeting
    case livenessCheck, proceed, status, message, shutDown, connectionTest
    case mode(Int)
    case button(CarSide, Bool)
    case modeInfo(Int)
    case video(Bool)
  }

  private(set) var id: CommandID?
  let purpose: Purpose
  /// The messages that have not been sent yet.
  private(set) var messages: [CarOutboundMessage]

  init(_ purpose: Purpose, _ messages: [CarOutboundMessage], for id: CommandID? = nil) {
    (self.purpose, self.messages, self.id) = (purpose, messages, id)
  }

  /// Removes the first message, which was sent.
  mutating func removeFirst() { messages.removeFirst() }
  /// Detaches the command from its caller, so that it completes without a reply.
  mutating func callerDisconnected() { id = nil }
}

/// The queued messages.
struct CarSendQueue: Sendable {
  /// The pause between a command and the tilts before and after it.
  static let pause: Nanoseconds = 50 * .millisecond
  static let stopInterval: Nanoseconds = 60 * .millisecond
  /// The pause between two commands while tilts are streaming, so that tilts are still sent.
  private static let spacing: Nanoseconds = 200 * .millisecond
  static let maxCommands = 16

  /// The stop messages that have not been sent yet.
  private(set) var stops: [CarOutboundMessage] = []
  /// When the first stop message is due.
  private(set) var stopDue: Instant = .min
  /// Whether the first stop message is in flight.
  private var isSendingStop = false
  private(set) var commands: [CarQueuedCommand] = []
  /// The end of the pause after the last message other than a tilt.
  private(set) var quietUntil: Instant = .min
  /// When the last message other than a tilt was sent.
  private var messageAt: Instant = .min
  /// When the last tilt was sent.
  private var tiltAt: Instant = .min
  private var lastWasStop = false
  /// Whether the first message of the first command is in flight.
  private var isInFlight = false

  // MARK: Stop

  /// Replaces the stop messages. The first one is due now, or after a pause if the last message sent was a Stop.
  mutating func stop(_ messages: [CarOutboundMessage], at now: Instant) {
    stops = messages
    isSendingStop = false
    stopDue = lastWasStop ? max(now, quietUntil) : now
  }

  /// Starts to send the first stop message, and returns it.
  mutating func startSendingStop() -> CarOutboundMessage? {
    isSendingStop = !stops.isEmpty
    return stops.first
  }

  /// Handles the end of a write of a stop message: removes it, unless the write failed, or the stop messages were replaced during
  /// the write.
  mutating func stopWriteEnded(_ failure: String?, at now: Instant) {
    if failure == nil, isSendingStop { stops.removeFirst() }
    isSendingStop = false
    stopDue = now &+ Self.stopInterval
  }

  // MARK: Queued commands

  var hasRoom: Bool { commands.count < Self.maxCommands }
  func contains(_ purpose: CarQueuedCommand.Purpose) -> Bool { commands.contains { $0.purpose == purpose } }
  var containsModeInfo: Bool { commands.contains { if case .modeInfo = $0.purpose { true } else { false } } }
  /// Whether the next command is Continue.
  var isContinueNext: Bool { commands.first?.purpose == .proceed }

  /// Queues a command; returns false if the queue is full.
  mutating func add(_ queued: CarQueuedCommand) -> Bool {
    guard hasRoom else { return false }
    commands.append(queued)
    return true
  }

  /// Queues a command even if the queue is full. Only a few commands, such as the release of a button, are queued this way.
  mutating func addAlways(_ queued: CarQueuedCommand) { commands.append(queued) }

  /// Queues a command before all others, except for one whose message is in flight.
  mutating func addFirst(_ queued: CarQueuedCommand) { commands.insert(queued, at: isInFlight ? 1 : 0) }

  /// Starts to send the first message of the first command, and returns it.
  mutating func startSendingCommand() -> CarOutboundMessage? {
    guard let message = commands.first?.messages.first else { return nil }
    isInFlight = true
    return message
  }

  /// Removes the message that the link has accepted. Returns its command if this was the command's last message, and the command has not
  /// been removed in the meantime.
  mutating func commandAccepted() -> CarQueuedCommand? {
    guard isInFlight, !commands.isEmpty else { return nil }
    isInFlight = false
    commands[0].removeFirst()
    return commands[0].messages.isEmpty ? commands.removeFirst() : nil
  }

  /// Removes and returns the command whose message could not be sent; nil if it has been removed in the meantime.
  mutating func commandFailed() -> CarQueuedCommand? {
    guard isInFlight, !commands.isEmpty else { return nil }
    isInFlight = false
    return commands.removeFirst()
  }

  /// Removes commands; a message that is already in flight is still sent.
  mutating func remove(where shouldRemove: (CarQueuedCommand) -> Bool) -> [CarQueuedCommand] {
    let removed = commands.filter(shouldRemove)
    if let first = commands.first, shouldRemove(first) { isInFlight = false }
    commands.removeAll(where: shouldRemove)
    return removed
  }

  /// Removes commands, except for the one whose message is in flight.
  mutating func removeWaiting(where shouldRemove: (CarQueuedCommand) -> Bool) -> [CarQueuedCommand] {
    guard isInFlight else { return remove(where: shouldRemove) }
    let inFlight = commands.removeFirst()
    let removed = commands.filter(shouldRemove)
    commands.removeAll(where: shouldRemove)
    commands.insert(inFlight, at: 0)
    return removed
  }

  mutating func cancel(_ id: CommandID) {
    for index in commands.indices where commands[index].id == id { commands[index].callerDisconnected() }
  }

  /// When the first command is due, not counting the pause after the last tilt. No further tilt is sent after this time.
  func commandDue(isStreaming: Bool) -> Instant? {
    if commands.isEmpty { return nil }
    return isStreaming && messageAt != .min ? max(quietUntil, messageAt &+ Self.spacing) : quietUntil
  }

  /// The end of the pause after the last tilt.
  var tiltPauseEnd: Instant { tiltAt == .min ? .min : tiltAt &+ Self.pause }

  // MARK: Sent messages

  /// Starts the pause after a message: when it is passed to the link, and again when the link has accepted it.
  mutating func messageSent(isStop: Bool, at now: Instant) {
    (messageAt, lastWasStop) = (now, isStop)
    quietUntil = now &+ (isStop ? Self.stopInterval : Self.pause)
  }

  mutating func tiltSent(at now: Instant) { (tiltAt, lastWasStop) = (now, false) }

  /// Empties the queue for a new link; returns the commands that were queued.
  mutating func reset() -> [CarQueuedCommand] {
    defer { self = CarSendQueue() }
    return commands
  }
}
