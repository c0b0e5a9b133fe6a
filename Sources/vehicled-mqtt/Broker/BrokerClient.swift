// The client of the broker: connects again after each failure, first by MQTT 5, and by 3.1.1 if the broker does not support it. It stores no
// message: what was not acknowledged on one connection is sent again by `Sender` on the next.

import CMosquitto
import Glibc
import Protocols
import ServiceRuntime

final class BrokerClient: EventSource {
  enum Event {
    case connected(BrokerLimits)
    /// The connection has ended or could not be opened. The next attempt is at `retry`, by the monotonic clock.
    case disconnected(BrokerFailure, retry: Instant)
    case acknowledged(id: CInt, failure: CInt?)
    case received(IncomingMessage)
    case filterRejected(String)
  }

  private enum State {
    case waiting
    case connecting
    /// Waiting for the reply to the first packet, until this time.
    case opening(BrokerConnection, until: Instant)
    case up(BrokerConnection)
  }

  /// How often the library checks the connection.
  private static let interval: Nanoseconds = 1 * .second
  private static let replyTimeout: Nanoseconds = 10 * .second
  /// A connection that ends earlier is not worth a quick retry: two clients with one ID would disconnect each other again and again.
  private static let shortTime: Nanoseconds = 5 * .second
  /// The number of short connections in a row from which the client ID is a likely cause.
  private static let suspiciousCount = 3

  private let options: BrokerOptions
  private let thread: BackgroundThread
  private let handle: (Event) -> Void
  private var state = State.waiting
  private var delay = RetryDelay(max: 60 * .second)
  /// The delay after a connection that has ended.
  private var quickDelay = RetryDelay(max: 5 * .second)
  /// Whether the next attempt uses MQTT 5.
  private var isCurrent = true
  /// Whether 3.1.1 is used because of silent attempts, which can have another cause.
  private var isGuess = false
  /// The number of attempts in a row that ended without a reply of the broker.
  private var silentAttempts = 0
  private var connectedAt: Instant = 0
  /// The number of short connections in a row.
  private var shortCount = 0

  init(_ options: BrokerOptions, loop: EventLoop, handle: @escaping (Event) -> Void) {
    (self.options, self.handle) = (options, handle)
    thread = BackgroundThread(name: "connect", loop: loop)
    super.init()
    wake = SystemClock.monotonic
    loop.add(self)
  }

  private var connection: BrokerConnection? {
    switch state {
    case .waiting, .connecting: nil
    case .opening(let connection, _), .up(let connection): connection
    }
  }

  override var descriptor: CInt { connection?.descriptor ?? -1 }
  override var interest: Int16 { Int16(POLLIN) | (connection?.wantsWrite == true ? Int16(POLLOUT) : 0) }

  override func ready(_ events: Int16, at now: Instant) { exchange(read: events & ~Int16(POLLOUT) != 0, at: now) }

  override func timerFired(at now: Instant) {
    switch state {
    case .waiting: connect(at: now)
    case .connecting: wake = nil
    case .opening(_, let until):
      if now >= until { return fail(.noReply(options), at: now) }
      exchange(read: false, at: now)
    case .up: exchange(read: false, at: now)
    }
  }

  private func connect(at now: Instant) {
    do throws(BrokerFailure) {
      let connection = try BrokerConnection(options, isCurrent: isCurrent)
      (state, wake) = (.connecting, nil)
      thread.run {
        connection.connect()
      } then: { [weak self] failure in
        guard let self, case .connecting = state, !isClosed else { return }
        let now = SystemClock.monotonic
        if let failure { return fail(failure, at: now) }
        state = .opening(connection, until: now + Self.replyTimeout)
        exchange(read: true, at: now)
      }
    } catch {
      fail(error, at: now)
    }
  }

  private func exchange(read: Bool, at now: Instant) {
    guard let connection else { return }
    wake = now + Self.interval
    for event in connection.exchange(read: read) {
      switch event {
      case .accepted(let limits):
        guard case .opening = state else { continue }
        state = .up(connection)
        silentAttempts = 0
        connectedAt = now
        delay.reset()
        connection.subscribe()
        handle(.connected(limits))
      case .refused(let failure), .ended(let failure): return fail(failure, at: now)
      case .acknowledged(let id, let failure): handle(.acknowledged(id: id, failure: failure))
      case .received(let message): handle(.received(message))
      case .filterRejected(let filter): handle(.filterRejected(filter))
      }
    }
    // A callback may have published, and thereby noticed the end.
    if connection.descriptor < 0 { fail(BrokerFailure("connection to \(options.description) lost"), at: now) }
  }

  private func fail(_ cause: BrokerFailure, at now: Instant) {
    guard !isClosed else { return }
    var failure = cause
    switch state {
    case .opening:
      // An old broker reports that it does not support the version, closes the connection without a reply, or waits for more. The last two
      // also happen once while a broker restarts.
      silentAttempts = failure.isWithoutReply ? silentAttempts + 1 : 0
      if failure.needsOldProtocol || silentAttempts >= 2 {
        (isCurrent, isGuess, silentAttempts) = (!isCurrent, !failure.needsOldProtocol, 0)
      }
    case .up:
      if isGuess { (isCurrent, isGuess) = (true, false) }
      shortCount = now < connectedAt + Self.shortTime ? shortCount + 1 : 0
      if shortCount == 0 { quickDelay.reset() }
      if shortCount >= Self.suspiciousCount {
        failure.description += "; check that no other client has the client ID \(options.clientID)"
      }
    case .waiting, .connecting: break
    }
    let next = if case .up = state { quickDelay.next() } else { delay.next() }
    state = .waiting
    // Many vehicles lose the broker at the same time, and must not all come back at the same time.
    let retry = now + Nanoseconds(Double(next) * Double.random(in: 0.5...1))
    wake = retry
    handle(.disconnected(failure, retry: retry))
  }

  /// Sends a message, and returns its ID, which its acknowledgement has. Only while connected.
  func publish(_ message: OutgoingMessage) throws(BrokerFailure) -> CInt {
    guard case .up(let connection) = state else { throw BrokerFailure("not connected to \(options.description)") }
    return try connection.publish(message)
  }

  /// Exchanges messages for at most some milliseconds while the loop does not run.
  func wait(milliseconds: CInt) {
    guard case .up(let connection) = state else { return }
    var descriptor = pollfd(fd: connection.descriptor, events: interest, revents: 0)
    exchange(read: poll(&descriptor, 1, milliseconds) > 0 && descriptor.revents & ~Int16(POLLOUT) != 0, at: SystemClock.monotonic)
  }

  /// Disconnects. The last will is published only if `withWill`.
  func close(withWill: Bool) {
    if case .up(let connection) = state { connection.disconnect(withWill: withWill) }
    state = .waiting
    isClosed = true
  }
}
