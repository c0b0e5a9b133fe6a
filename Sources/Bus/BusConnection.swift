// A connection to a message bus, on a thread of its own that sleeps in poll(2) and holds everything of libdbus: nothing
// is locked there, and no message of libdbus ever leaves it. Replies are matched by serial here, so that a call ends for
// certain when the bus dies (libdbus forgets its pending calls then). What may surprise is told where it is done.

import CDBus
import CLinux
import Glibc
import Synchronization

/// One connection, from its opening to its end. All closures are called on its thread.
public final class BusConnection: Sendable {
  public typealias Reply = @Sendable (Result<BusMessage, BusError>) -> Void

  fileprivate enum Job: Sendable {
    case send(BusMessage)
    case call(BusMessage, milliseconds: Int, Reply)
    case close
  }

  /// What waits for the thread.
  private struct Inbox {
    var jobs: [Job] = []
    /// The thread has ended, and why.
    var ended: String?
    /// Whose signals and calls are read beside those of the bus itself; nil: everybody's.
    var audible: Set<String>?
  }

  private let inbox = Mutex(Inbox())
  private let bell: CInt

  /// Begins to connect. `ready` is told our name on the bus, `received` every signal and call, `ended` why the
  /// connection is no more: once, the last of all.
  public init(
    to address: String, ready: @escaping @Sendable (String) -> Void, received: @escaping @Sendable (BusMessage) -> Void,
    ended: @escaping @Sendable (String) -> Void
  ) {
    bell = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))
    let pump = BusPump(address: address, connection: self, bell: bell, ready: ready, received: received)
    let code = startThread {
      let reason = pump.run()
      self.finish(reason)
      ended(reason)
    }
    precondition(code == 0, "no thread for the bus: \(String(cString: strerror(code)))")
  }

  deinit { Glibc.close(bell) }

  /// Sends a signal or a reply. Nothing tells when it cannot be sent.
  public func send(_ message: BusMessage) { post(.send(message)) }

  /// Makes a call; `reply` is told exactly once.
  public func call(_ message: BusMessage, milliseconds: Int = 25_000, reply: @escaping Reply) {
    post(.call(message, milliseconds: milliseconds, reply))
  }

  /// Passes over the signals and calls of all others than the bus itself and these, by their unique names, without reading
  /// them: anybody may send us as much as the bus lets through.
  public func hear(only senders: Set<String>) { inbox.withLock { $0.audible = senders } }

  fileprivate func hears(_ sender: String?) -> Bool {
    inbox.withLock { inbox in inbox.audible.map { audible in sender == DBus.name || sender.map(audible.contains) ?? false } ?? true }
  }

  /// Ends the connection once what was posted before is sent; what the bus did for us ends with it.
  public func close() { post(.close) }

  private func post(_ job: Job) {
    let ended = inbox.withLock { inbox in
      if inbox.ended == nil { inbox.jobs.append(job) }
      return inbox.ended
    }
    if let ended {
      if case .call(_, _, let reply) = job { reply(.failure(.disconnected(ended))) }
    } else {
      eventfd_write(bell, 1)
    }
  }

  fileprivate func takeJobs() -> [Job] {
    var count: eventfd_t = 0
    eventfd_read(bell, &count)
    return inbox.withLock { inbox in
      defer { inbox.jobs = [] }
      return inbox.jobs
    }
  }

  private func finish(_ reason: String) {
    let left = inbox.withLock { inbox in
      inbox.ended = reason
      defer { inbox.jobs = [] }
      return inbox.jobs
    }
    for case .call(_, _, let reply) in left { reply(.failure(.disconnected(reason))) }
  }
}

/// The thread's side. Never touched by another thread.
private final class BusPump {
  private let address: String
  private unowned let connection: BusConnection
  private let bell: CInt
  private let ready: (String) -> Void
  private let received: (BusMessage) -> Void

  private var bus: OpaquePointer?
  private var watches: [OpaquePointer] = []
  private var calls: [UInt32: (deadline: Int64, reply: (Result<BusMessage, BusError>) -> Void)] = [:]
  private var isClosing = false
  private var trouble: String?

  init(
    address: String, connection: BusConnection, bell: CInt, ready: @escaping (String) -> Void, received: @escaping (BusMessage) -> Void
  ) {
    self.address = address
    self.connection = connection
    self.bell = bell
    self.ready = ready
    self.received = received
  }

  /// Connects and serves until the connection ends; gives the reason.
  func run() -> String {
    clinux_name_thread("bus")
    var error = DBusError()
    dbus_error_init(&error)
    guard let bus = dbus_connection_open_private(address, &error) else {
      defer { dbus_error_free(&error) }
      return error.message.map { String(cString: $0) } ?? "cannot connect to \(address)"
    }
    self.bus = bus
    dbus_connection_set_exit_on_disconnect(bus, 0)
    let me = Unmanaged.passUnretained(self).toOpaque()
    let isWatching = dbus_connection_set_watch_functions(
      bus,
      { watch, me in
        if let watch { pump(me).watches.append(watch) }
        return 1
      },
      { watch, me in pump(me).watches.removeAll { $0 == watch } }, { _, _ in }, me, nil)
    let isFiltering = dbus_connection_add_filter(bus, { _, message, me in pump(me).take(message) }, me, nil)
    guard isWatching != 0, isFiltering != 0 else { return "no memory for a bus connection" }
    sayHello()
    while trouble == nil, !(isClosing && dbus_connection_has_messages_to_send(bus) == 0) { turn(bus) }
    end(bus)
    return trouble ?? "closed"
  }

  /// Waits for something to do, and does it.
  private func turn(_ bus: OpaquePointer) {
    var polled = [pollfd(fd: bell, events: Int16(POLLIN), revents: 0)]
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
      // Handling one may have removed another.
      guard watches.contains(watch) else { continue }
      var flags: UInt32 = 0
      if polled.revents & Int16(POLLIN) != 0 { flags |= DBUS_WATCH_READABLE.rawValue }
      if polled.revents & Int16(POLLOUT) != 0 { flags |= DBUS_WATCH_WRITABLE.rawValue }
      if polled.revents & Int16(POLLERR) != 0 { flags |= DBUS_WATCH_ERROR.rawValue }
      if polled.revents & Int16(POLLHUP) != 0 { flags |= DBUS_WATCH_HANGUP.rawValue }
      dbus_watch_handle(watch, flags)
    }
    // A flood of messages must not keep jobs and deadlines waiting.
    for _ in 0..<64 where dbus_connection_dispatch(bus) != DBUS_DISPATCH_DATA_REMAINS { break }
    expire()
  }

  private func perform(_ job: BusConnection.Job) {
    switch job {
    case .send(let message): _ = try? post(message)
    case .call(let message, let milliseconds, let reply):
      do throws(BusError) {
        calls[try post(message)] = (now() + Int64(milliseconds) * 1_000_000, reply)
      } catch {
        reply(.failure(error))
      }
    case .close: isClosing = true
    }
  }

  /// Queues a message and gives its serial.
  private func post(_ message: BusMessage) throws(BusError) -> UInt32 {
    guard let bus, trouble == nil else { throw .disconnected(trouble ?? "closed") }
    let raw = try message.raw()
    var serial: UInt32 = 0
    guard dbus_connection_send(bus, raw.pointer, &serial) != 0 else { throw .unsendable("no memory for a message") }
    return serial
  }

  private func sayHello() {
    let hello = BusMessage.call(DBus.name, DBus.path, DBus.name, "Hello")
    guard let serial = try? post(hello) else { return }
    let reply = { [unowned self] (result: Result<BusMessage, BusError>) in
      if case .success(let message) = result, let name = message.body.first?.string { return ready(name) }
      if trouble == nil { trouble = "the bus does not greet us" }
    }
    calls[serial] = (now() + 10_000_000_000, reply)
  }

  /// A message came in. All are ours: libdbus has nobody else to give them to.
  private func take(_ raw: OpaquePointer?) -> DBusHandlerResult {
    guard let raw else { return DBUS_HANDLER_RESULT_HANDLED }
    if dbus_message_is_signal(raw, "org.freedesktop.DBus.Local", "Disconnected") != 0 {
      trouble = trouble ?? "the bus closed the connection"
      return DBUS_HANDLER_RESULT_HANDLED
    }
    // Only a reply answers a call: anybody may send a signal that says it does.
    let type = dbus_message_get_type(raw)
    let isReply = type == DBUS_MESSAGE_TYPE_METHOD_RETURN || type == DBUS_MESSAGE_TYPE_ERROR
    let reply = isReply ? calls.removeValue(forKey: dbus_message_get_reply_serial(raw))?.reply : nil
    guard isReply || connection.hears(dbus_message_get_sender(raw).map { String(cString: $0) }) else {
      return DBUS_HANDLER_RESULT_HANDLED
    }
    let message: BusMessage
    do throws(BusError) {
      message = try BusMessage(raw)
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

  private func expire() {
    let now = now()
    for (serial, call) in calls where call.deadline <= now {
      calls[serial] = nil
      call.reply(.failure(.timeout))
    }
  }

  /// Ends every call, then the connection, in the order that libdbus wants.
  private func end(_ bus: OpaquePointer) {
    let left = calls
    calls = [:]
    let reason = trouble ?? "closed"
    trouble = reason
    for call in left.values { call.reply(.failure(.disconnected(reason))) }
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

private func pump(_ pointer: UnsafeMutableRawPointer?) -> BusPump {
  guard let pointer else { preconditionFailure("libdbus lost our pointer") }
  return Unmanaged<BusPump>.fromOpaque(pointer).takeUnretainedValue()
}

/// The bus itself, as a peer.
public enum DBus {
  public static let name = "org.freedesktop.DBus"
  public static let path = "/org/freedesktop/DBus"
  public static let properties = "org.freedesktop.DBus.Properties"
  public static let objectManager = "org.freedesktop.DBus.ObjectManager"

  /// The system bus: $DBUS_SYSTEM_BUS_ADDRESS, else the well-known socket.
  public static var systemAddress: String {
    if let given = getenv("DBUS_SYSTEM_BUS_ADDRESS") { return String(cString: given) }
    return "unix:path=/run/dbus/system_bus_socket"
  }
}
