// The serial endpoint: a pseudo-terminal that behaves like a serial port. This process keeps the slave open, so that clients can open and
// close it. When the last client closes a real port, the kernel discards unread bytes, the exclusive lock and the terminal settings. This
// class does the same when inotify reports a close. When the machine resets its link (an unplugged adapter), a new terminal replaces
// the old one.

import CLinux
import Glibc
import Protocols
import ServiceRuntime

final class Pty<Peer: Machine>: MachineRunner<Peer> {
  private let symlink: String?
  private var path = ""
  private var slave: Int32 = -1
  private var watch: Int32 = -1
  /// The number of clients; 0 is possible while a client is connected, because inotify may merge two simultaneous opens into one event.
  private var clients = 0

  /// Creates the terminal and the symbolic link to it, and announces the link URL.
  init(_ machine: Peer, symlink: String?, loop: EventLoop, log: ActivityLog) throws {
    self.symlink = symlink
    super.init(machine, name: "", loop: loop, log: log)
    loop.add(self)
    start()
    try openPort()
  }

  override var descriptor: Int32 { watch }
  override var interest: Int16 { Int16(POLLIN) }

  /// Handles opens and closes of the terminal, before the bytes that the clients sent.
  override func ready(_ events: Int16, at now: Instant) {
    let size = MemoryLayout<inotify_event>.size
    var buffer = [UInt8](repeating: 0, count: 64 * size)
    let count = read(watch, &buffer, buffer.count)
    for start in stride(from: 0, to: count, by: size) {
      let mask = buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start + MemoryLayout<Int32>.size, as: UInt32.self) }
      if mask & UInt32(IN_OPEN) != 0 { clients += 1 }
      if mask & UInt32(IN_CLOSE) != 0 { clients = max(0, clients - 1) }
      if mask & UInt32(IN_CLOSE) != 0 || clients == 1 { resetPort(at: now, closed: mask & UInt32(IN_CLOSE) != 0) }
    }
    connections[.main]?.hasNoReader = clients == 0
  }

  /// Resets the terminal as the kernel resets a real port between two clients.
  private func resetPort(at now: Instant, closed: Bool) {
    if closed { _ = ioctl(slave, UInt(TIOCNXCL)) }
    guard clients == 0 || !closed else { return }
    if closed { clinux_serial_raw(slave, Pty.baud) }
    tcflush(slave, TCIFLUSH)
    connections[.main]?.discardOutput(at: now)
  }

  private static var baud: UInt32 { 115_200 }

  private func openPort() throws {
    var master: Int32 = -1
    guard openpty(&master, &slave, nil, nil, nil) == 0 else { throw SimulatorError("cannot create a pseudo-terminal", errno: errno) }
    for file in [master, slave] { _ = fcntl(file, F_SETFD, FD_CLOEXEC) }
    _ = fcntl(master, F_SETFL, fcntl(master, F_GETFL) | O_NONBLOCK)
    clinux_serial_raw(slave, Pty.baud)
    var name = [CChar](repeating: 0, count: 128)
    guard ttyname_r(slave, &name, name.count) == 0 else { throw SimulatorError("cannot get the name of the pseudo-terminal", errno: errno) }
    path = name.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    self.name = path
    clients = 0
    watch = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    let isWatched = inotify_add_watch(watch, path, UInt32(IN_OPEN | IN_CLOSE)) >= 0
    try link()
    open(master, name: path).hasNoReader = isWatched
    log.announce(Endpoint.url(path: symlink ?? path))
  }

  override func mayRead(from connection: Connection) -> Bool { connection.sending == nil }

  /// Opens a new terminal when the machine resets its link; the machine keeps its state.
  override func perform(_ effect: Effect, at now: Instant) {
    guard case .resetLink = effect else { return super.perform(effect, at: now) }
    close(.main)
    feed(.linkChanged(.main, .down("closed")), at: now)
    Glibc.close(slave)
    Glibc.close(watch)
    do {
      try openPort()
    } catch {
      Console.writeError("\(error)")
      exit(1)
    }
  }

  /// Points the symbolic link to the new terminal atomically.
  private func link() throws {
    guard let symlink else { return }
    var status = stat()
    if lstat(symlink, &status) == 0, status.st_mode & S_IFMT != S_IFLNK {
      throw SimulatorError("\(symlink) exists and is not a symbolic link: choose another path")
    }
    let temporary = "\(symlink).\(getpid())"
    unlink(temporary)
    guard Glibc.symlink(path, temporary) == 0, rename(temporary, symlink) == 0 else {
      throw SimulatorError("cannot create the symbolic link \(symlink)", errno: errno)
    }
  }

  /// Removes the symbolic link if it still points to this terminal.
  func removeSymlink() {
    guard let symlink else { return }
    var target = [CChar](repeating: 0, count: 128)
    let count = target.withUnsafeMutableBufferPointer { $0.baseAddress.map { readlink(symlink, $0, 128) } ?? -1 }
    if count > 0, String(decoding: target.prefix(count).map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self) == path { unlink(symlink) }
  }
}
