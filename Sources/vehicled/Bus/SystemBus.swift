// A connection to the system message bus: opened on demand, reopened when it fails. Replies and signals are delivered on the loop,
// in order. Nothing here is specific to BlueZ or polkit.

import DBus
import Protocols

@Loop final class SystemBus {
  enum State: Equatable {
    case closed
    case connecting
    case up
    case down(String)
  }

  private(set) var state = State.closed
  /// Called when the connection has come up or gone down.
  var changed: @Loop () -> Void = {}
  /// Called when a signal or a call has arrived.
  var received: @Loop (DBusMessage) -> Void = { _ in }

  /// The sender whose signals are received, besides the bus itself.
  var signalSender: String? { didSet { connection?.receive(only: Set([signalSender].compactMap(\.self))) } }

  private let address: String
  private var connection: DBusConnection?
  /// The number of the current connection. Events of earlier connections are ignored.
  private var generation = 0
  private var delay: Nanoseconds = 0
  /// Completes `close`; nil before `close` is called.
  private var closeCompletion: (@Loop () -> Void)?
  private lazy var retry = Timer { [weak self] _ in self?.open() }

  private static let firstDelay: Nanoseconds = .second
  private static let maxDelay: Nanoseconds = 30 * .second
  private static let maxShutdownDuration: Nanoseconds = 300 * .millisecond

  init(address: String = DBusDaemon.systemAddress) { self.address = address }

  /// Connects, unless it is connected or connecting.
  func open() {
    guard connection == nil, closeCompletion == nil else { return }
    retry.set(nil)
    generation += 1
    let number = generation
    state = .connecting
    connection = DBusConnection(to: address) { _ in
      Loop.post { [weak self] in self?.cameUp(number) }
    } received: { message in
      Loop.post { [weak self] in if self?.generation == number { self?.received(message) } }
    } ended: { reason in
      Loop.post { [weak self] in self?.ended(reason, number) }
    }
    connection?.receive(only: [])
  }

  /// Makes a call; `reply` is called exactly once, in a later turn.
  func call(
    _ message: DBusMessage, milliseconds: Int = 25_000, then reply: @escaping @Loop @Sendable (Result<DBusMessage, DBusError>) -> Void
  ) {
    guard let connection else { return Loop.post { reply(.failure(.disconnected(self.downReason ?? "closed"))) } }
    connection.call(message, milliseconds: milliseconds) { result in Loop.post { reply(result) } }
  }

  /// Sends a reply. Failures are not reported.
  func send(_ message: DBusMessage) { connection?.send(message) }

  /// Why the connection is down.
  var downReason: String? { if case .down(let reason) = state { reason } else { nil } }

  /// Closes the connection once pending calls are sent, or after 0.3 s.
  func close() async {
    guard let connection else { return }
    await withCheckedContinuation { continuation in
      let deadline = Timer { [self] _ in finishClosing() }
      closeCompletion = {
        deadline.set(nil)
        continuation.resume()
      }
      deadline.set(Clock.monotonic() + Self.maxShutdownDuration)
      connection.close()
    }
  }

  private func cameUp(_ number: Int) {
    guard number == generation else { return }
    delay = 0
    state = .up
    changed()
  }

  private func ended(_ reason: String, _ number: Int) {
    guard number == generation, connection != nil else { return }
    connection = nil
    state = .down(reason)
    if closeCompletion != nil { return finishClosing() }
    delay = delay == 0 ? Self.firstDelay : min(delay * 2, Self.maxDelay)
    retry.set(Clock.monotonic() + delay)
    changed()
  }

  private func finishClosing() {
    let completion = closeCompletion
    closeCompletion = {}
    completion?()
  }
}
