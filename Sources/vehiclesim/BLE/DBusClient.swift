// A D-Bus connection that delivers its events on the event loop's thread, in order.

import CLinux
import DBus
import Glibc
import Protocols
import ServiceRuntime
import Synchronization

final class DBusClient: EventSource {
  /// The queue of events from the D-Bus thread to the event loop's thread.
  private final class Inbox: Sendable {
    enum Event: Sendable {
      case ready
      case received(DBusMessage)
      case replied(Int, Result<DBusMessage, DBusError>)
      case ended(String)
    }

    /// An eventfd that wakes the event loop.
    let wakeup = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))
    private let events = Mutex([Event]())

    func post(_ event: Event) {
      events.withLock { $0.append(event) }
      eventfd_write(wakeup, 1)
    }

    /// Removes and returns all events.
    func removeAll() -> [Event] {
      var count: eventfd_t = 0
      eventfd_read(wakeup, &count)
      return events.withLock { events in
        defer { events = [] }
        return events
      }
    }
  }

  var onReady: () -> Void = {}
  /// Called for each signal and method call.
  var onMessage: (DBusMessage) -> Void = { _ in }
  /// Called with the reason when the connection has ended.
  var onEnd: (String) -> Void = { _ in }
  private let inbox = Inbox()
  private let connection: DBusConnection
  private var calls: [Int: (Result<DBusMessage, DBusError>) -> Void] = [:]
  private var lastCall = 0

  /// Starts to connect.
  init(to address: String) {
    let inbox = inbox
    connection = DBusConnection(to: address) { _ in
      inbox.post(.ready)
    } received: {
      inbox.post(.received($0))
    } ended: {
      inbox.post(.ended($0))
    }
  }

  override var descriptor: Int32 { inbox.wakeup }
  override var interest: Int16 { Int16(POLLIN) }

  override func ready(_ events: Int16, at now: Instant) {
    for event in inbox.removeAll() {
      switch event {
      case .ready: onReady()
      case .received(let message): onMessage(message)
      case .replied(let number, let result): calls.removeValue(forKey: number)?(result)
      case .ended(let reason): onEnd(reason)
      }
    }
  }

  func send(_ message: DBusMessage) { connection.send(message) }

  func call(_ message: DBusMessage, then reply: @escaping (Result<DBusMessage, DBusError>) -> Void) {
    lastCall += 1
    let (number, inbox) = (lastCall, inbox)
    calls[number] = reply
    connection.call(message) { inbox.post(.replied(number, $0)) }
  }
}
