// A connection to a message bus. A single thread uses libdbus and sleeps in poll(2). This file itself matches replies to calls by their
// serial, so that every call ends even if the bus closes the connection; libdbus would drop its pending calls.

import CDBus
import CLinux
import Glibc
import Synchronization

/// A connection to a message bus. All closures are called on its thread.
public final class DBusConnection: Sendable {
  public typealias Reply = @Sendable (Result<DBusMessage, DBusError>) -> Void

  fileprivate enum Job: Sendable {
    case send(DBusMessage)
    case call(DBusMessage, milliseconds: Int, Reply)
    case close
  }

  /// The state that the thread shares with its callers.
  private struct Shared {
    /// The work queued for the thread.
    var jobs: [Job] = []
    /// Why the thread has ended; nil while it runs.
    var endReason: String?
    /// The peers whose signals and calls are read, in addition to the bus itself; nil means all peers.
    var acceptedSenders: Set<String>?
  }

  private let shared = Mutex(Shared())
  /// An eventfd that wakes the thread.
  private let wakeup: CInt

  /// Starts connecting. Calls `ready` with the unique bus name, `received` for each signal and method call, and `ended` once, as the
  /// last callback, with the reason.
  public init(
    to address: String, ready: @escaping @Sendable (String) -> Void, received: @escaping @Sendable (DBusMessage) -> Void,
    ended: @escaping @Sendable (String) -> Void
  ) {
    wakeup = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))
    let thread = DBusThread(address: address, connection: self, wakeup: wakeup, ready: ready, received: received)
    let code = startThread {
      let reason = thread.run()
      self.finish(reason)
      ended(reason)
    }
    precondition(code == 0, "no thread for the bus: \(String(cString: strerror(code)))")
  }

  deinit { Glibc.close(wakeup) }

  /// Sends a signal or a reply. Failures are not reported.
  public func send(_ message: DBusMessage) { post(.send(message)) }

  /// Makes a call and invokes `reply` exactly once.
  public func call(_ message: DBusMessage, milliseconds: Int = 25_000, reply: @escaping Reply) {
    post(.call(message, milliseconds: milliseconds, reply))
  }

  /// Ignores signals and calls of all peers except the bus itself and these unique names. They are not even decoded, because any peer may
  /// send as much as the bus allows.
  public func receive(only senders: Set<String>) { shared.withLock { $0.acceptedSenders = senders } }

  fileprivate func accepts(_ sender: String?) -> Bool {
    shared.withLock { shared in
      shared.acceptedSenders.map { acceptedSenders in sender == DBusDaemon.name || sender.map(acceptedSenders.contains) ?? false } ?? true
    }
  }

  /// Closes the connection after the queued messages have been sent. Match rules and names end with the connection.
  public func close() { post(.close) }

  private func post(_ job: Job) {
    let endReason = shared.withLock { shared in
      if shared.endReason == nil { shared.jobs.append(job) }
      return shared.endReason
    }
    if let endReason {
      if case .call(_, _, let reply) = job { reply(.failure(.disconnected(endReason))) }
    } else {
      eventfd_write(wakeup, 1)
    }
  }

  fileprivate func takeJobs() -> [Job] {
    var count: eventfd_t = 0
    eventfd_read(wakeup, &count)
    return shared.withLock { shared in
      defer { shared.jobs = [] }
      return shared.jobs
    }
  }

  private func finish(_ reason: String) {
    let unexecuted = shared.withLock { shared in
      shared.endReason = reason
      defer { shared.jobs = [] }
      return shared.jobs
    }
    for case .call(_, _, let reply) in unexecuted { reply(.failure(.disconnected(reason))) }
  }
}

/// The thread of a connection. Only the thread itself uses this state.
private final class DBusThread {
  private let address: String
  private unowned let connection: DBusConnection
  private let wakeup: CInt
  private let ready: (String) -> Void
  private let received: (DBusMessage) -> Void

  private var bus: OpaquePointer?
  private var watches: [OpaquePointer] = []
  private var calls: [UInt32: (deadline: Int64, reply: (Result<DBusMessage, DBusError>) -> Void)] = [:]
  private var isClosing = false
  private var closeReason: String?

  init(
    address: String, connection: DBusConnection, wakeup: CInt, ready: @escaping (String) -> Void, received: @escaping (DBusMessage) -> Void
  ) {
    self.address = address
    self.connection = connection
    self.wakeup = wakeup
    self.ready = ready
    self.received = received
  }

  /// Connects and serves until the connection ends, and returns the reason.
  func run() -> String {
    clinux_name_thread("bus")
    var error = CDBus.DBusError()
    dbus_error_init(&error)
    guard let bus = dbus_connection_open_private(address, &error) else {
      defer { dbus_error_free(&error) }
      return error.message.map { String(cString: $0) } ?? "cannot connect to \(address)"
    }
    self.bus = bus
    dbus_connection_set_exit_on_disconnect(bus, 0)
    let context = Unmanaged.passUnretained(self).toOpaque()
    let isWatching = dbus_connection_set_watch_functions(
      bus,
      { watch, context in
        if let watch { thread(context).watches.append(watch) }
        return 1
      },
      { watch, context in thread(context).watches.removeAll { $0 == watch } }, { _, _ in }, context, nil)
    let isFiltering = dbus_connection_add_filter(bus, { _, message, context in thread(context).handle(message) }, context, nil)
    guard isWatching != 0, isFiltering != 0 else { return "no memory for a bus connection" }
    sendHello()
    while closeReason == nil, !(isClosing && dbus_connection_has_messages_to_send(bus) == 0) { handleEvents(bus) }
    end(bus)
    return closeReason ?? "closed"
  }

  /// Waits for events and handles them.
  private func handleEvents(_ bus: OpaquePointer) {
    var polled = [pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)]
    let active = watches.filter { dbus_watch_get_enabled($0) != 0 }
    for watch in active {
      let flags = dbus_watch_get_flags(watch)
      let events = (flags & DBUS_WATCH_READABLE.rawValue != 0 ? POLLIN : 0) | (flags & DBUS_WATCH_WRITABLE.rawValue != 0 ? POLLOUT : 0)
      polled.append(pollfd(fd: dbus_watch_get_unix_fd(watch), events: Int16(events), revents: 0))
    }
    let hasMore = dbus_connection_get_dispatch_status(bus) == DBUS_DISPATCH_DATA_REMAINS
    let next = hasMore ? now() : calls.values.map(\.deadline).min()
    guard clinux_poll(&polled, polled.count, next.map { max(0, $0 - now()) } ?? -1) >= 0 else { return }
    if polled[0].revents != 0 { connection.takeJobs().forEach(perform) }
    for (watch, polled) in zip(active, polled.dropFirst()) where polled.revents != 0 {
      // Handling one watch may have removed another.
      guard watches.contains(watch) else { continue }
      var flags: UInt32 = 0
      if polled.revents & Int16(POLLIN) != 0 { flags |= DBUS_WATCH_READABLE.rawValue }
      if polled.revents & Int16(POLLOUT) != 0 { flags |= DBUS_WATCH_WRITABLE.rawValue }
      if polled.revents & Int16(POLLERR) != 0 { flags |= DBUS_WATCH_ERROR.rawValue }
      if polled.revents & Int16(POLLHUP) != 0 { flags |= DBUS_WATCH_HANGUP.rawValue }
      dbus_watch_handle(watch, flags)
    }
    // A flood of messages must not delay queued work and deadlines.
    for _ in 0..<64 where dbus_connection_dispatch(bus) != DBUS_DISPATCH_DATA_REMAINS { break }
    expireCalls()
  }

  private func perform(_ job: DBusConnection.Job) {
    switch job {
    case .send(let message): _ = try? post(message)
    case .call(let message, let milliseconds, let reply):
      do throws(DBusError) {
        calls[try post(message)] = (now() + Int64(milliseconds) * 1_000_000, reply)
      } catch {
        reply(.failure(error))
      }
    case .close: isClosing = true
    }
  }

  /// Queues a message and returns its serial.
  private func post(_ message: DBusMessage) throws(DBusError) -> UInt32 {
    guard let bus, closeReason == nil else { throw .disconnected(closeReason ?? "closed") }
    let raw = try message.raw()
    var serial: UInt32 = 0
    guard dbus_connection_send(bus, raw.pointer, &serial) != 0 else { throw .unsendable("no memory for a message") }
    return serial
  }

  private func sendHello() {
    let hello = DBusMessage.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "Hello")
    guard let serial = try? post(hello) else { return }
    let reply = { [unowned self] (result: Result<DBusMessage, DBusError>) in
      if case .success(let message) = result, let name = message.body.first?.string { return ready(name) }
      if closeReason == nil { closeReason = "the bus did not reply to Hello" }
    }
    calls[serial] = (now() + 10_000_000_000, reply)
  }

  /// Handles a received message. This filter is the only receiver, so it consumes every message.
  private func handle(_ raw: OpaquePointer?) -> DBusHandlerResult {
    guard let raw else { return DBUS_HANDLER_RESULT_HANDLED }
    if dbus_message_is_signal(raw, "org.freedesktop.DBus.Local", "Disconnected") != 0 {
      closeReason = closeReason ?? "the bus closed the connection"
      return DBUS_HANDLER_RESULT_HANDLED
    }
    // Only replies are matched by serial: any peer could send a signal with a reply serial.
    let type = dbus_message_get_type(raw)
    let isReply = type == DBUS_MESSAGE_TYPE_METHOD_RETURN || type == DBUS_MESSAGE_TYPE_ERROR
    let reply = isReply ? calls.removeValue(forKey: dbus_message_get_reply_serial(raw))?.reply : nil
    guard isReply || connection.accepts(dbus_message_get_sender(raw).map { String(cString: $0) }) else {
      return DBUS_HANDLER_RESULT_HANDLED
    }
    let message: DBusMessage
    do throws(DBusError) {
      message = try DBusMessage(raw)
    } catch {
      reply?(.failure(error))
      return DBUS_HANDLER_RESULT_HANDLED
    }
    switch message.kind {
    case .reply: reply?(.success(message))
    case .error(let name): reply?(.failure(.refused(name: name, text: message.body.first?.string ?? "")))
    case .call, .signal: received(message)
    }
    return DBUS_HANDLER_RESULT_HANDLED
  }

  private func expireCalls() {
    let now = now()
    for (serial, call) in calls where call.deadline <= now {
      calls[serial] = nil
      call.reply(.failure(.timeout))
    }
  }

  /// Fails all unanswered calls and closes the connection, in the order that libdbus requires.
  private func end(_ bus: OpaquePointer) {
    let unanswered = calls
    calls = [:]
    let reason = closeReason ?? "closed"
    closeReason = reason
    for call in unanswered.values { call.reply(.failure(.disconnected(reason))) }
    dbus_connection_close(bus)
    while dbus_connection_dispatch(bus) == DBUS_DISPATCH_DATA_REMAINS {}
    dbus_connection_set_watch_functions(bus, nil, nil, nil, nil, nil)
    dbus_connection_unref(bus)
    self.bus = nil
  }

  private func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// The thread that a callback of libdbus has received as its context.
private func thread(_ pointer: UnsafeMutableRawPointer?) -> DBusThread {
  guard let pointer else { preconditionFailure("libdbus passed no context pointer") }
  return Unmanaged<DBusThread>.fromOpaque(pointer).takeUnretainedValue()
}

/// The bus daemon as a peer.
public enum DBusDaemon {
  public static let name = "org.freedesktop.DBus"
  public static let path = "/org/freedesktop/DBus"
  public static let properties = "org.freedesktop.DBus.Properties"
  public static let objectManager = "org.freedesktop.DBus.ObjectManager"

  /// The address of the system bus: $DBUS_SYSTEM_BUS_ADDRESS, otherwise the well-known socket.
  public static var systemAddress: String {
    if let given = getenv("DBUS_SYSTEM_BUS_ADDRESS") { return String(cString: given) }
    return "unix:path=/run/dbus/system_bus_socket"
  }
}
