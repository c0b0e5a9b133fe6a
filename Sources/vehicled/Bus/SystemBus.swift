// The daemon's one connection to the system's message bus: opened when somebody needs it, opened again when it dies.
// Everything arrives on the loop, in order. Knows nothing of who talks over it.

import Bus
import Protocols

@Loop final class SystemBus {
  enum State: Equatable {
    case closed
    case connecting
    case up
    case down(String)
  }

  private(set) var state = State.closed
  /// The connection came up or went down.
  var changed: @Loop () -> Void = {}
  /// A signal or a call came in.
  var received: @Loop (BusMessage) -> Void = { _ in }

  /// Whose signals are wanted, beside the bus's own.
  var audible: String? { didSet { connection?.hear(only: Set([audible].compactMap(\.self))) } }

  private let address: String
  private var connection: BusConnection?
  /// Tells the events of this connection from those of one before.
  private var generation = 0
  private var wait: Nanoseconds = 0
  private var closed: (@Loop () -> Void)?
  private lazy var retry = Timer { [weak self] _ in self?.open() }

  private static let firstWait: Nanoseconds = .second
  private static let maxWait: Nanoseconds = 30 * .second
  private static let maxShutdownDuration: Nanoseconds = 300 * .millisecond

  init(address: String = DBus.systemAddress) { self.address = address }

  /// Connects, unless it is connected or about to be.
  func open() {
    guard connection == nil, closed == nil else { return }
    retry.set(nil)
    generation += 1
    let mine = generation
    state = .connecting
    connection = BusConnection(to: address) { _ in
      Loop.post { [weak self] in self?.cameUp(mine) }
    } received: { message in
      Loop.post { [weak self] in if self?.generation == mine { self?.received(message) } }
    } ended: { reason in
      Loop.post { [weak self] in self?.ended(reason, mine) }
    }
    connection?.hear(only: [])
  }

  /// Makes a call; `reply` is told exactly once, in a later turn.
  func call(_ message: BusMessage, milliseconds: Int = 25_000, then reply: @escaping @Loop @Sendable (Result<BusMessage, BusError>) -> Void)
  {
    guard let connection else { return Loop.post { reply(.failure(.disconnected(self.words ?? "closed"))) } }
    connection.call(message, milliseconds: milliseconds) { result in Loop.post { reply(result) } }
  }

  /// Why there is no connection.
  var words: String? { if case .down(let reason) = state { reason } else { nil } }

  /// Ends the connection once what was asked before is sent, or after 0.3 s.
  func close() async {
    guard let connection else { return }
    await withCheckedContinuation { continuation in
      let deadline = Timer { [self] _ in finish() }
      closed = {
        deadline.set(nil)
        continuation.resume()
      }
      deadline.set(Clock.monotonic() + Self.maxShutdownDuration)
      connection.close()
    }
  }

  private func cameUp(_ one: Int) {
    guard one == generation else { return }
    wait = 0
    state = .up
    changed()
  }

  private func ended(_ reason: String, _ one: Int) {
    guard one == generation, connection != nil else { return }
    connection = nil
    state = .down(reason)
    if closed != nil { return finish() }
    wait = wait == 0 ? Self.firstWait : min(wait * 2, Self.maxWait)
    retry.set(Clock.monotonic() + wait)
    changed()
  }

  private func finish() {
    let closed = closed
    self.closed = {}
    closed?()
  }
}
