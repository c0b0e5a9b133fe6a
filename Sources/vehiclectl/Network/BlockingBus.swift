// A blocking client of the system bus. Every call has a timeout, which Ctrl-C shortens so that changes can still be undone.

import CLinux
import DBus
import Glibc
import Synchronization

final class BlockingBus {
  /// The timeout of a call in seconds after Ctrl-C.
  private static let timeoutAfterInterrupt = 5.0

  private let connection: DBusConnection
  private let mailbox: Mailbox
  /// The number of the last call.
  private var last = 0

  /// Connects. Returns nil if there is no bus. `signal` is called for each signal, on another thread.
  init?(address: String, within seconds: Double = 3, signal: @escaping @Sendable (DBusMessage) -> Void) {
    let mailbox = Mailbox()
    self.mailbox = mailbox
    connection = DBusConnection(to: address) { _ in
      mailbox.change { $0.isReady = true }
    } received: { message in
      if message.kind == .signal { signal(message) }
    } ended: { reason in
      mailbox.change { $0.ended = reason }
    }
    let isConnected = mailbox.wait(until: Clock.monotonic + seconds) { $0.isReady || $0.ended != nil ? $0.isReady && $0.ended == nil : nil }
    guard isConnected == true else {
      connection.close()
      return nil
    }
  }

  deinit { connection.close() }

  /// Ignores signals from all senders except this one and the bus itself.
  func receiveSignals(only sender: String) { connection.receive(only: [sender]) }

  /// Makes a call and waits for its reply.
  func call(_ message: DBusMessage, within seconds: Double) throws(DBusError) -> [DBusValue] {
    last += 1
    let (number, mailbox) = (last, mailbox)
    connection.call(message, milliseconds: Int(seconds * 1000)) { result in mailbox.change { $0.replies[number] = result } }
    let reply = mailbox.wait(until: Clock.monotonic + seconds, afterInterrupt: Self.timeoutAfterInterrupt) {
      $0.replies.removeValue(forKey: number)
    }
    guard let reply else { throw .timeout }
    return try reply.get().body
  }
}

/// Hands results from the bus's thread to the waiting thread.
private final class Mailbox: Sendable {
  struct State {
    var isReady = false
    var ended: String?
    var replies: [Int: Result<DBusMessage, DBusError>] = [:]
  }

  private let state = Mutex(State())
  private let event = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))

  deinit { close(event) }

  func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    eventfd_write(event, 1)
  }

  /// Waits until `find` returns a value. Returns nil at the deadline, or `afterInterrupt` seconds after Ctrl-C if that is earlier.
  func wait<Found>(until deadline: Double, afterInterrupt: Double = .infinity, _ find: (inout State) -> Found?) -> Found? {
    var deadline = deadline
    var isInterrupted = false
    while true {
      if let found = state.withLock({ find(&$0) }) { return found }
      let now = Clock.monotonic
      if Interrupt.received, !isInterrupted {
        isInterrupted = true
        deadline = min(deadline, now + afterInterrupt)
      }
      guard now < deadline else { return nil }
      var entry = pollfd(fd: event, events: Int16(POLLIN), revents: 0)
      // At most 0.2 s, because a signal that arrives just before the call of poll does not interrupt it.
      poll(&entry, 1, Int32(min(0.2, deadline - now) * 1000) + 1)
      var count: eventfd_t = 0
      eventfd_read(event, &count)
    }
  }
}
