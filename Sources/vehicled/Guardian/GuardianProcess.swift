// The guardian: a small process beside the daemon with duplicates of the descriptors of guarded links, and their last-will frames. When the
// daemon dies, the guardian sends the shutdown sequences of all links and ends. When the daemon freezes while a device is driven, the
// guardian sends the frames that stop the device. Independent of the protocols. Signals that end the daemon do not end the guardian.

import CLinux
import Glibc
import Protocols

struct GuardianProcess {
  /// The argument that makes the program a guardian.
  static let argument = "--guardian"
  /// The descriptor of the socket to the daemon.
  static let socket: CInt = 3
  /// The maximum time to wait until peers have acknowledged the last bytes.
  private static let timeout: Nanoseconds = 2 * .second

  private struct GuardedLink {
    let descriptor: CInt
    let will: LastWill
    /// The time when the daemon counts as frozen; nil while the device is not driven.
    var deadline: Instant?
    /// The messages left to send.
    var pending: ArraySlice<LastWill.Message> = []
    /// When the first of them is due.
    var due: Instant = 0
    /// The number of attempts so far to write the next message to a link without room, 5 ms apart.
    var attempts = 0

    /// Starts to send these messages. The first one is due after its pause.
    mutating func start(_ messages: [LastWill.Message], at now: Instant) {
      deadline = nil
      pending = messages[...]
      due = now + (messages.first?.pause ?? 0)
      attempts = 0
    }

    /// Sends the messages that are due. Gives up on a link that accepts no bytes for 2 s.
    mutating func sendDue(at now: Instant) {
      while let message = pending.first, now >= due {
        let count = message.bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count < 0, errno == EAGAIN || errno == EINTR, attempts < 400 {
          attempts += 1
          return due = now + 5 * .millisecond
        }
        if count < 0 { return pending = [] }
        attempts = 0
        // A partial write cannot be completed: the receiver resynchronises at the next message.
        pending = pending.dropFirst()
        due = now + (pending.first?.pause ?? 0)
      }
    }
  }

  private let socket: CInt
  private var links: [UInt16: GuardedLink] = [:]
  private var isDaemonGone = false

  init(socket: CInt) { self.socket = socket }

  /// Runs until the daemon has ended and all messages are sent.
  static func main() -> Never {
    // All signals stay blocked: a signal to the daemon's whole process group or unit must not end the guardian before it has sent its
    // messages.
    setsid()
    clinux_name_thread("vehicled-guard")
    OutOfMemory.protectGuardian()
    var guardian = GuardianProcess(socket: socket)
    guardian.run()
    exit(0)
  }

  mutating func run() {
    var buffer = [UInt8](repeating: 0, count: GuardianMessage.maxSize)
    while !isDaemonGone || links.values.contains(where: { !$0.pending.isEmpty }) {
      var entry = pollfd(fd: isDaemonGone ? -1 : socket, events: Int16(POLLIN), revents: 0)
      let next = links.values.compactMap { $0.pending.isEmpty ? $0.deadline : $0.due }.min()
      _ = clinux_poll(&entry, 1, next.map { max(0, $0 - Clock.monotonic()) } ?? -1)
      // Pending heartbeats are read before deadlines are checked.
      while !isDaemonGone, receive(&buffer) {}
      let now = Clock.monotonic()
      for number in links.keys { check(number, at: now) }
    }
    closeLinks()
  }

  /// Closes the links once the peers have acknowledged the last bytes. Unread input is read first: closing a TCP connection with unread
  /// input resets it, and the last bytes would be lost.
  private func closeLinks() {
    let limit = Clock.monotonic() + Self.timeout
    var bytes = [UInt8](repeating: 0, count: 4096)
    for link in links.values {
      repeat {
        while read(link.descriptor, &bytes, bytes.count) > 0 {}
        if clinux_unsent(link.descriptor) <= 0 { break }
        usleep(2000)
      } while Clock.monotonic() < limit
      close(link.descriptor)
    }
  }

  private mutating func check(_ number: UInt16, at now: Instant) {
    guard var link = links[number] else { return }
    if let deadline = link.deadline, now >= deadline, !isDaemonGone {
      link.start(link.will.frozen, at: now)
      log("the daemon is frozen: its guardian stops the driven vehicle")
      let reply: [UInt8] = [UInt8(number >> 8), UInt8(number & 0xFF)]
      _ = clinux_send(socket, reply, reply.count, -1)
    }
    link.sendDue(at: now)
    links[number] = link
  }

  /// Receives and handles one packet. Returns false if there is none.
  private mutating func receive(_ buffer: inout [UInt8]) -> Bool {
    var descriptor: CInt = -1
    let count = clinux_receive(socket, &buffer, buffer.count, &descriptor)
    if count == -Int(EAGAIN) { return false }
    if count == -Int(EINTR) { return true }
    guard count > 0 else {
      daemonEnded()
      return false
    }
    let now = Clock.monotonic()
    switch GuardianMessage(buffer.prefix(count)) {
    case .register(let number, let will):
      guard descriptor >= 0 else { return true }
      let before = links.updateValue(GuardedLink(descriptor: descriptor, will: will, deadline: links[number]?.deadline), forKey: number)
      before.map { _ = close($0.descriptor) }
      return true
    case .heartbeat(let number, let milliseconds):
      links[number]?.deadline = now + Int64(milliseconds) * .millisecond
      // The daemon replaces a guardian that does not reply.
      _ = clinux_send(socket, [0], 1, -1)
    case .unwatch(let number): links[number]?.deadline = nil
    case .release(let number): links.removeValue(forKey: number).map { _ = close($0.descriptor) }
    case nil: break
    }
    if descriptor >= 0 { close(descriptor) }
    return true
  }

  private mutating func daemonEnded() {
    isDaemonGone = true
    if !links.isEmpty { log("the daemon has ended: its guardian stops the driven vehicles and closes their links") }
    let now = Clock.monotonic()
    links = links.mapValues { link in
      var link = link
      link.start(link.will.dead, at: now)
      return link
    }
  }

  private func log(_ text: String) {
    let line = Array("vehicled: \(text)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
  }
}
