// One connection to the daemon, or to another service: a blocking Unix socket with a deadline for every wait. An invalid reply ends the
// connection.

import CLinux
import Glibc
import Protocols
import Varlink

final class Client {
  static let defaultSocket = "/run/vehicled/io.vehicled"
  /// Seconds without any reply to Watch, including its heartbeats, after which the daemon is considered dead: three heartbeat intervals.
  static let watchTimeout = 30.0

  private let path: String
  private let service: Service
  private var socket: Int32
  private let timeout: Double
  private let trace: ((_ sent: Bool, [UInt8]) -> Void)?
  /// Action arguments whose values are hidden in traces.
  var secrets: Set<String> = Toy.secrets
  private var framing = VarlinkFraming(limit: VarlinkFraming.replyLimit)
  /// Whether the service has sent any reply.
  private var hasReplied = false
  private var chunk = [UInt8](repeating: 0, count: 65_536)

  /// Connects; fails at once if no service is listening.
  init(
    path: String, timeout: Double, service: Service = .daemon, trace: ((_ sent: Bool, [UInt8]) -> Void)? = nil
  ) throws(Failure) {
    self.path = path
    self.service = service
    self.timeout = timeout
    self.trace = trace
    socket = try Self.connected(to: path, timeout: timeout, service)
  }

  private static func connected(to path: String, timeout: Double, _ service: Service) throws(Failure) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, !bytes.contains(0), bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw .usage("invalid socket path \"\(path)\": it must have 1 to 107 bytes; use \(service.socketOption) PATH")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard socket >= 0 else { throw .other("cannot create a socket: \(Client.errorText(errno))") }
    let deadline = Clock.monotonic + timeout
    while true {
      let result = withUnsafePointer(to: address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
      }
      if result == 0 { return socket }
      let error = errno
      if error == EAGAIN, Clock.monotonic < deadline {
        usleep(5_000)  // the listen backlog is full
        continue
      }
      close(socket)
      switch error {
      case ENOENT, ECONNREFUSED: throw .notRunning(socket: path, service)
      case EACCES, EPERM: throw .noAccess(socket: path, service)
      case EAGAIN: throw .timeout(seconds: timeout)
      default: throw .other("cannot connect to \(path): \(Client.errorText(error))")
      }
    }
  }

  deinit { if socket >= 0 { close(socket) } }

  /// Calls a method that replies once. A read-only method is retried once if the connection ends without a reply, because the daemon may
  /// have restarted.
  func call<M: VarlinkMethod>(_ method: M.Type, _ parameters: M.Parameters) throws(Failure) -> M.Result {
    try result(M.self, try reply(method, parameters))
  }

  /// Calls a method that replies once, and returns the parameters of the reply as JSON.
  func json<M: VarlinkMethod>(_ method: M.Type, _ parameters: M.Parameters) throws(Failure) -> JSON {
    try result(of: try reply(method, parameters), as: JSON.self)
  }

  private func reply<M: VarlinkMethod>(_ method: M.Type, _ parameters: M.Parameters) throws(Failure) -> VarlinkReply {
    let call = try message { try VarlinkCall.message(method, parameters) }
    do throws(Failure) {
      return try exchange(call)
    } catch {
      guard error == closedFailure, Self.readOnly.contains(M.name) else { throw error }
      close(socket)
      framing = VarlinkFraming(limit: VarlinkFraming.replyLimit)
      socket = -1
      socket = try Self.connected(to: path, timeout: timeout, service)
      return try exchange(call)
    }
  }

  /// Methods whose calls may be retried.
  private static let readOnly: Set<String> = [
    Contract.Status.name, Contract.Describe.name, Contract.Get.name, Contract.Diagnose.name, Contract.Statistics.name,
    VarlinkService.GetInfo.name, VarlinkService.GetInterfaceDescription.name, HistoryContract.StatusMethod.name,
    HistoryContract.SeriesMethod.name, HistoryContract.PlotMethod.name, HistoryContract.PeriodsMethod.name,
    HistoryContract.PeriodMethod.name,
  ]

  private func exchange(_ call: [UInt8]) throws(Failure) -> VarlinkReply {
    try send(call)
    return try receive()
  }

  /// Calls a method that may reply several times. `each` receives every reply and returns whether to continue. It receives nil after `tick`
  /// seconds without a reply, after a signal, and when a descriptor in `watching` is readable. Throws if the first reply takes longer than
  /// `firstReply` seconds, or any later one longer than `laterReplies` seconds; nil means no limit.
  func stream<M: VarlinkMethod>(
    _ method: M.Type, _ parameters: M.Parameters, firstReply: Double?, tick: Double? = nil, laterReplies: Double?,
    watching descriptors: () -> [Int32] = { [] },
    _ each: (M.Result?) throws -> Bool
  ) throws {
    try send(message { try VarlinkCall.message(method, parameters, more: true) })
    var deadline = firstReply.map { Clock.monotonic + $0 }
    var timeoutFailure = Failure.timeout(seconds: firstReply ?? 0)
    while true {
      guard let reply = try receive(until: [deadline, tick.map { Clock.monotonic + $0 }].compactMap { $0 }.min(), watching: descriptors())
      else {
        if let deadline, Clock.monotonic >= deadline { throw timeoutFailure }
        guard try each(nil) else { return }
        continue
      }
      deadline = laterReplies.map { Clock.monotonic + $0 }
      timeoutFailure = .daemonGone("no reply from \(service.name) for \(Value.text(laterReplies ?? 0)) s", service)
      guard try each(try result(M.self, reply)), reply.continues else { return }
    }
  }

  /// Calls a method that may reply several times. Returns the parameters of all replies, decoded as this type.
  func callAll<M: VarlinkMethod, T: Decodable>(_ method: M.Type, _ parameters: M.Parameters, as type: T.Type) throws(Failure) -> [T] {
    try begin(method, parameters, more: true)
    var (results, continues): ([T], Bool) = ([], true)
    while continues {
      let reply = try receive()
      results.append(try result(of: reply, as: type))
      continues = reply.continues
    }
    return results
  }

  /// Calls a method by name. `each` receives the parameters of every reply. With `more`, only the first reply has a timeout, and only if
  /// `firstReply` (seconds) is given.
  func callByName(_ method: String, _ parameters: JSON, more: Bool, firstReply: Double? = nil, _ each: (JSON) throws -> Void) throws {
    try send(message { try VarlinkCall.message(method, parameters, more: more) })
    let timeout = more ? firstReply : timeout
    var deadline = timeout.map { Clock.monotonic + $0 }
    while true {
      guard let reply = try receive(until: deadline) else {
        if Interrupt.received { return }
        if let deadline, Clock.monotonic >= deadline { throw Failure.timeout(seconds: timeout ?? 0) }
        continue
      }
      if more { deadline = nil }
      try each(try result(of: reply, as: JSON.self))
      if !reply.continues { return }
    }
  }

  /// The socket, for polling several connections at once.
  var descriptor: Int32 { socket }

  /// Sends a call without waiting for its replies, which `next` and `receiveReply` return.
  func begin<M: VarlinkMethod>(_ method: M.Type, _ parameters: M.Parameters, more: Bool = false) throws(Failure) {
    try send(message { try VarlinkCall.message(method, parameters, more: more) })
  }

  /// Returns the next reply, or nil if there is none yet. Does not block.
  func next<M: VarlinkMethod>(_ method: M.Type) throws(Failure) -> M.Result? {
    guard let reply = try receive(until: 0) else { return nil }
    return try result(M.self, reply)
  }

  /// Waits for the next reply to the call that `begin` sent. Returns it, and whether more replies follow. Throws after the timeout.
  func receiveReply<M: VarlinkMethod>(to method: M.Type) throws(Failure) -> (result: M.Result, continues: Bool) {
    let reply = try receive()
    return (try result(M.self, reply), reply.continues)
  }

  /// Waits until a descriptor is readable or a signal arrives, but at most until `time` and at most 60 s. Returns for each descriptor
  /// whether it is readable.
  @discardableResult
  static func wait(for descriptors: [Int32], until time: Double) -> [Bool] {
    var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let nanoseconds = Int64(max(0, min(60, time - Clock.monotonic)) * 1e9)
    let count = clinux_poll(&entries, entries.count, nanoseconds)
    return entries.map { count > 0 && $0.revents != 0 }
  }

  private func message(_ make: () throws -> [UInt8]) throws(Failure) -> [UInt8] {
    do { return try make() } catch { throw .usage("cannot encode the call: \(error)") }
  }

  private func result<M: VarlinkMethod>(_ method: M.Type, _ reply: VarlinkReply) throws(Failure) -> M.Result {
    try result(of: reply, as: M.Result.self)
  }

  private func result<T: Decodable>(of reply: VarlinkReply, as type: T.Type) throws(Failure) -> T {
    let parameters: JSON
    do throws(VarlinkViolation) {
      guard reply.error != nil else { return try reply.parameters(as: type) }
      parameters = try reply.parameters(as: JSON.self)
    } catch {
      throw .notVehicled(error.description, service)
    }
    let name = reply.error ?? ""
    throw ContractError(name: name, parameters: parameters).map(Failure.rejected)
      ?? HistoryContractError(name: name, parameters: parameters).map(Failure.history)
      ?? .unknown(name: name, parameters: parameters)
  }

  private func send(_ message: [UInt8]) throws(Failure) {
    trace?(true, Trace.redacted(message, hiding: secrets))
    let deadline = Clock.monotonic + timeout
    var rest = message[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        guard wait(POLLOUT, until: deadline) || Clock.monotonic < deadline else { throw .timeout(seconds: timeout) }
      } else if errno == EPIPE {
        return  // the daemon has closed the connection, but its reply may still be unread
      } else if errno != EINTR {
        throw closedFailure
      }
    }
  }

  private func receive() throws(Failure) -> VarlinkReply {
    let deadline = Clock.monotonic + timeout
    while Clock.monotonic < deadline {
      if let reply = try receive(until: deadline) { return reply }
      if Interrupt.received { throw .other("interrupted") }
    }
    throw .timeout(seconds: timeout)
  }

  /// Returns the next reply, or nil at the deadline, after a signal, or when another descriptor is readable.
  private func receive(until deadline: Double?, watching others: [Int32] = []) throws(Failure) -> VarlinkReply? {
    while true {
      do {
        if let message = try framing.next() {
          trace?(false, message)
          hasReplied = true
          return try VarlinkReply(message)
        }
      } catch {
        throw .notVehicled("\((error as? VarlinkViolation)?.description ?? "a message is longer than 16 MiB")", service)
      }
      let count = chunk.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
      if count > 0 {
        framing.append(chunk[..<count])
      } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
        throw closedFailure
      } else if !wait(POLLIN, until: deadline, watching: others) {
        return nil
      }
    }
  }

  /// The failure for a connection that the service has closed. The daemon closes a connection without a reply if its configuration is
  /// invalid, or if it has too many clients.
  private var closedFailure: Failure {
    switch service {
    case .daemon: hasReplied ? .daemonGone("vehicled closed the connection") : .closedWithoutReply
    case .history: .daemonGone("vehicled-history closed the connection\(hasReplied ? "" : " without a reply")", service)
    }
  }

  /// Waits until the socket or another descriptor is ready; returns whether the socket is.
  private func wait(_ events: Int32, until deadline: Double?, watching others: [Int32] = []) -> Bool {
    var entries = [pollfd(fd: socket, events: Int16(events), revents: 0)]
    entries += others.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let milliseconds = deadline.map { Int32(max(0, ($0 - Clock.monotonic) * 1000).rounded(.up)) } ?? -1
    return poll(&entries, nfds_t(entries.count), milliseconds) > 0 && entries[0].revents != 0
  }

  private static func errorText(_ error: Int32) -> String { String(cString: strerror(error)) }
}
