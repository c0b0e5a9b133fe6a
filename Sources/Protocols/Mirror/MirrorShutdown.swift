// The shutdown sequence. `Disconnected` makes the ESP32 discard everything, including the name and any value that the display has not read
// yet. So it is sent only if the display has read everything, or will have very soon (DisplayReadWindow). Otherwise the connection is
// closed without it, and the mirror keeps showing the last values. The sequence ends within the device's timeout.
// Source: main.cpp (what Disconnected clears), ISM-App (0.5 s).

/// The end of a connection.
struct MirrorShutdown: Sendable {
  enum Step: Sendable, Equatable {
    /// An earlier write has not been acknowledged yet.
    case waiting(SendID)
    /// No write is in flight.
    case idle
    case sending(SendID)
    /// `Disconnected` was sent; the mirror can process it until this time.
    case disconnecting(until: Instant)
    case over
  }

  private(set) var step: Step
  /// When `Disconnected` may be sent; nil if it is not sent.
  let disconnectTime: Instant?
  private let deadline: Instant

  private static let timeout: Nanoseconds = 1_200 * .millisecond
  /// The maximum delay before `Disconnected` is sent, so that it arrives before the device's timeout.
  private static let maxDelay: Nanoseconds = 400 * .millisecond
  private static let processingTime: Nanoseconds = 500 * .millisecond

  /// Begins the shutdown of this session.
  init(of session: MirrorSession, at now: Instant) {
    deadline = now &+ Self.timeout
    step = session.writeInFlight.map { .waiting($0.id) } ?? .idle
    let isSendingValue = session.writeInFlight?.step.isValue ?? false
    let moment = max(now, session.readWindow.end ?? now)
    disconnectTime = isSendingValue || moment > now &+ Self.maxDelay ? nil : moment
  }

  var nextWake: Instant {
    switch step {
    case .waiting, .sending: deadline
    case .idle: min(disconnectTime ?? deadline, deadline)
    case .disconnecting(let until): min(until, deadline)
    case .over: deadline
    }
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant) {
    switch step {
    case .waiting(id): step = .idle
    case .sending(id): step = failure == nil ? .disconnecting(until: now &+ Self.processingTime) : .over
    default: break
    }
  }

  /// Starts sending `Disconnected` with this send ID, if it is due; returns whether it is due.
  mutating func beginDisconnect(as id: SendID, at now: Instant) -> Bool {
    guard step == .idle, let disconnectTime, now >= disconnectTime, now < deadline else { return false }
    step = .sending(id)
    return true
  }

  func isOver(at now: Instant) -> Bool {
    switch step {
    case .over: true
    case .idle where disconnectTime == nil: true
    case .disconnecting(let until): now >= until || now >= deadline
    default: now >= deadline
    }
  }
}

extension MirrorMachine {
  mutating func stop(at now: Instant, _ effects: inout Effects) {
    guard case .up(let session) = state else {
      if case .down = state { effects.append(.stopped) }
      return
    }
    handleDisconnect("the link is being closed", &effects)
    fault = nil
    let shutdown = MirrorShutdown(of: session, at: now)
    if shutdown.disconnectTime == nil { effects.append(.note("closed without Disconnected: the display may not have read everything yet")) }
    state = .shuttingDown(shutdown)
  }

  mutating func advanceShutdown(at now: Instant, _ effects: inout Effects) {
    guard case .shuttingDown(var shutdown) = state else { return }
    if shutdown.beginDisconnect(as: lastSendID &+ 1, at: now) { write(.disconnected, &effects) }
    state = .shuttingDown(shutdown)
    guard shutdown.isOver(at: now) else { return }
    state = .down("the link is being closed")
    effects.append(.stopped)
  }
}
