// Sends messages, and checks that the car has executed them. Owns the send queue, the write in flight and the stop confirmation. Each
// frame is one write, because the car does not reassemble split segments.
// Source: AutoTT, TCP.py.

struct CarSender: Sendable {
  /// A write that the link has accepted, or that has failed.
  enum EndedWrite {
    case nothing
    case stop(CarOutboundMessage)
    /// The last message of a command was accepted, or any of its messages failed.
    case command(CarQueuedCommand)
    case tilt(CarTilt)
    case livenessCheck
    case disconnect
  }

  private static let maxUnacknowledgedChecks = 2

  private let dialect: CarDialect
  private(set) var queue = CarSendQueue()
  private(set) var write = CarWrite()
  private(set) var confirmation = CarStopConfirmation()

  init(_ dialect: CarDialect) { self.dialect = dialect }

  /// When the next request for a confirmation is sent; nil if none is needed, or if stop messages are queued.
  var confirmationDue: Instant? { queue.stops.isEmpty ? confirmation.due : nil }

  // MARK: Link

  mutating func linkUp(needsStop: Bool, at now: Instant) {
    // An as-built car sends its modes twice to a new client.
    confirmation = CarStopConfirmation(unsolicited: dialect == .asBuilt ? 2 : 0)
    if needsStop { queue.stop([.stop], at: now) }
    _ = queue.add(CarQueuedCommand(.greeting, [.modes]))
    if dialect == .asBuilt { _ = queue.add(CarQueuedCommand(.greeting, [.mainViewEntered])) }
  }

  /// Fails all queued commands, but not the write in flight.
  mutating func reset(_ error: CommandError, _ effects: inout Effects) {
    for queued in queue.reset() { effects.fail(command: queued.id, error) }
  }

  /// Discards the write in flight, because the link is lost or closed.
  mutating func linkDown() { write.reset() }

  // MARK: Queue

  /// Queues a command, or rejects it if the queue is full.
  mutating func add(_ queued: CarQueuedCommand, _ effects: inout Effects) -> Bool {
    if queue.add(queued) { return true }
    Self.rejectFull(queued.id, &effects)
    return false
  }

  /// Queues a message, or drops it if the queue is full.
  mutating func addIfPossible(_ queued: CarQueuedCommand) { _ = queue.add(queued) }

  static func rejectFull(_ id: CommandID?, _ effects: inout Effects) {
    effects.refuse(command: id, code: .busy, "too many queued commands: try again later")
  }

  /// Queues a command that must not be dropped.
  mutating func addAlways(_ queued: CarQueuedCommand) { queue.addAlways(queued) }

  /// Removes and fails commands; a message that is already in flight is still sent.
  mutating func remove(_ error: CommandError, _ effects: inout Effects, where shouldRemove: (CarQueuedCommand.Purpose) -> Bool) {
    for queued in queue.remove(where: { shouldRemove($0.purpose) }) { effects.fail(command: queued.id, error) }
  }

  /// Removes and fails commands, except for the one whose message is in flight.
  mutating func removeWaiting(_ purpose: CarQueuedCommand.Purpose, _ error: CommandError, _ effects: inout Effects) {
    guard queue.contains(purpose) else { return }
    for queued in queue.removeWaiting(where: { $0.purpose == purpose }) { effects.fail(command: queued.id, error) }
  }

  mutating func cancel(_ id: CommandID) { queue.cancel(id) }

  // MARK: Confirmation

  /// Sends these stop messages next, and awaits a confirmation.
  mutating func stop(_ messages: [CarOutboundMessage], at now: Instant) {
    queue.stop(messages, at: now)
    confirmation.stopQueued()
  }

  /// Notes that the car may discard commands until it responds to a request for its modes. If `requestsModes`, queues such a request.
  mutating func expectLoss(requestsModes: Bool) {
    confirmation.expectLoss()
    if requestsModes { queue.addFirst(CarQueuedCommand(.greeting, [.modes])) }
  }

  /// Handles a list of modes; returns whether it confirms Stop. If the car may have discarded Stop, sends `stopMessages`.
  mutating func responseReceived(_ stopMessages: [CarOutboundMessage], at now: Instant) -> Bool {
    switch confirmation.responseReceived(at: now) {
    case .nothing: return false
    case .stopAgain:
      queue.stop(stopMessages, at: now)
      return false
    case .stopConfirmed: return true
    }
  }

  /// Repeats the request for a confirmation, and Stop if the car may have missed it.
  mutating func expire(isClosing: Bool, at now: Instant) {
    guard let due = confirmationDue, now >= due else { return }
    confirmation.requestQueued()
    if confirmation.awaitsStop {
      queue.stop([.stop, .modes], at: now)
    } else if !isClosing, !queue.contains(.greeting) {
      queue.addFirst(CarQueuedCommand(.greeting, [.modes]))
    }
  }

  // MARK: Writes

  mutating func drawID() -> SendID { write.drawID() }

  mutating func sendStop(at now: Instant, _ effects: inout Effects) {
    if let message = queue.startSendingStop() { send(message, .stop(message), at: now, &effects) }
  }

  mutating func sendDisconnect(at now: Instant, _ effects: inout Effects) { send(.disconnect, .disconnect, at: now, &effects) }

  /// Sends and returns the next message of the first command.
  mutating func sendCommand(at now: Instant, _ effects: inout Effects) -> CarOutboundMessage? {
    guard let message = queue.startSendingCommand() else { return nil }
    if message == .proceed { confirmation.continueSent() }
    send(message, .command(message), at: now, &effects)
    return message
  }

  mutating func sendLivenessCheck(at now: Instant, _ effects: inout Effects) {
    let frame = CarOutboundMessage.modes.frame(dialect)
    queue.messageSent(isStop: false, at: now)
    let id = write.begin(.livenessCheck, at: now)
    effects.append(.sendUnlessBacklogged(.main, frame, id, maxUnacknowledged: Self.maxUnacknowledgedChecks * frame.count))
  }

  /// Sends a tilt; the write fails if more than `maxUnacknowledged` bytes are unacknowledged.
  mutating func send(_ tilt: CarTilt, _ frame: [UInt8], maxUnacknowledged: Int, at now: Instant, _ effects: inout Effects) {
    queue.tiltSent(at: now)
    effects.append(.sendUnlessBacklogged(.main, frame, write.begin(.tilt(tilt), at: now), maxUnacknowledged: maxUnacknowledged))
  }

  private mutating func send(
    _ message: CarOutboundMessage, _ purpose: CarWrite.Purpose, at now: Instant, _ effects: inout Effects
  ) {
    queue.messageSent(isStop: message == .stop, at: now)
    effects.send(.main, message.frame(dialect), write.begin(purpose, at: now))
  }

  /// Handles the end of a write, and returns what was written; `failure` is nil if the link has accepted the message.
  mutating func writeEnded(_ id: SendID, _ failure: String?, at now: Instant) -> EndedWrite {
    guard let purpose = write.end(id) else { return .nothing }
    switch purpose {
    case .tilt(let tilt):
      queue.tiltSent(at: now)
      return .tilt(tilt)
    case .stop(let message):
      queue.messageSent(isStop: message == .stop, at: now)
      queue.stopWriteEnded(failure, at: now)
      if failure == nil, message == .modes { confirmation.requestSent(at: now) }
      return .stop(message)
    case .command(let message):
      queue.messageSent(isStop: false, at: now)
      guard let queued = failure == nil ? queue.commandAccepted() : queue.commandFailed() else { return .nothing }
      if failure == nil, message == .modes { confirmation.requestSent(at: now) }
      return .command(queued)
    case .livenessCheck:
      if failure == nil { confirmation.requestSent(at: now) }
      return .livenessCheck
    case .disconnect: return .disconnect
    }
  }
}
