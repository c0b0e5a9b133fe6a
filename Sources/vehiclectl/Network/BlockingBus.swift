// A blocking client of the system's message bus, for a verb that asks a few questions: every call has a time limit, and Ctrl-C
// shortens it, so that there is still an answer to undo what was begun. Must never wait for a bus that is not there.

import Bus
import CLinux
import Glibc
import Synchronization

final class BlockingBus {
  /// Once Ctrl-C came a call may take this many seconds more.
  private static let afterInterrupt = 5.0

  private let connection: BusConnection
  private let mailbox: Mailbox
  private var last = 0

  /// Connects, or gives nil where there is no bus. Signals are told on a thread of their own.
  init?(address: String, within seconds: Double = 3, signal: @escaping @Sendable (BusMessage) -> Void) {
    let mailbox = Mailbox()
    self.mailbox = mailbox
    connection = BusConnection(to: address) { _ in
      mailbox.change { $0.isReady = true }
    } received: { message in
      if message.kind == .signal { signal(message) }
    } ended: { reason in
      mailbox.change { $0.ended = reason }
    }
    let isThere = mailbox.wait(until: Clock.monotonic + seconds) { $0.isReady || $0.ended != nil ? $0.isReady && $0.ended == nil : nil }
    guard isThere == true else {
      connection.close()
      return nil
    }
  }

  deinit { connection.close() }

  /// Hears nobody's signals but this one's and the bus's own.
  func receiveSignals(only sender: String) { connection.hear(only: [sender]) }

  /// Makes a call and waits at most so many seconds for its reply.
  func call(_ message: BusMessage, within seconds: Double) throws(BusError) -> [BusValue] {
    last += 1
    let (number, mailbox) = (last, mailbox)
    connection.call(message, milliseconds: Int(seconds * 1000)) { result in mailbox.change { $0.replies[number] = result } }
    let reply = mailbox.wait(until: Clock.monotonic + seconds, afterInterrupt: Self.afterInterrupt) {
      $0.replies.removeValue(forKey: number)
    }
    guard let reply else { throw .timeout }
    return try reply.get().body
  }
}

/// What the bus's thread leaves for the one that waits.
private final class Mailbox: Sendable {
  struct State {
    var isReady = false
    var ended: String?
    var replies: [Int: Result<BusMessage, BusError>] = [:]
  }

  private let state = Mutex(State())
  private let bell = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))

  deinit { close(bell) }

  func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    eventfd_write(bell, 1)
  }

  /// Waits until the look finds something, or the time is over.
  func wait<Found>(until deadline: Double, afterInterrupt: Double = .infinity, _ look: (inout State) -> Found?) -> Found? {
    var deadline = deadline
    var isInterrupted = false
    while true {
      if let found = state.withLock({ look(&$0) }) { return found }
      let now = Clock.monotonic
      if Interrupt.received, !isInterrupted {
        isInterrupted = true
        deadline = min(deadline, now + afterInterrupt)
      }
      guard now < deadline else { return nil }
      var entry = pollfd(fd: bell, events: Int16(POLLIN), revents: 0)
      poll(&entry, 1, Int32(min(0.2, deadline - now) * 1000) + 1)  // a signal that came just before it does not end it
      var count: eventfd_t = 0
      eventfd_read(bell, &count)
    }
  }
}
