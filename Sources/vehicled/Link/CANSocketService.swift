// CAN sockets for a daemon that may not create them: the sandbox of vehicled.service permits the common families of sockets only.
// vehicled-can.socket starts this program with the option --can-socket for each connection; it passes one socket, which is not bound to an
// interface, and ends. The reply is 0 with the socket, or the number of the error (4 bytes in native order).

import CLinux
import Glibc
import Protocols
import ServiceRuntime

struct CANSocketService {
  /// The socket on which systemd listens: ListenSequentialPacket= in vehicled-can.socket.
  static let defaultPath = "/run/vehicled/can"
  /// The argument that makes the program create a socket.
  static let argument = "--can-socket"

  private static let worker = Worker()
  private static let unavailable =
    "this kernel does not support CAN (sudo modprobe can-raw), or vehicled-can.socket is not running (sudo systemctl start "
    + "vehicled-can.socket); a slcan: link needs neither"

  private let path: String
  /// The time limit for the reply: systemd starts a process.
  private let timeout: Nanoseconds

  init(path: String = Self.defaultPath, timeout: Nanoseconds = 5 * .second) { (self.path, self.timeout) = (path, timeout) }

  /// Requests a socket. `finish` gets it, or an error with the remedy, in a later turn of the loop.
  @Loop func request(then finish: @escaping @Loop @Sendable (Result<CInt, ValueError>) -> Void) {
    Self.worker.run({ () throws(ValueError) in try received() }, then: finish)
  }

  private func received() throws(ValueError) -> CInt {
    let connection = connect()
    guard connection >= 0 else { throw ValueError(Self.unavailable) }
    defer { close(connection) }
    var entry = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
    guard clinux_poll(&entry, 1, timeout) > 0 else {
      throw ValueError("vehicled-can@.service does not respond; see: journalctl -u 'vehicled-can@*'")
    }
    var code: Int32 = 0
    var descriptor: CInt = -1
    let length = clinux_receive(connection, &code, MemoryLayout.size(ofValue: code), &descriptor)
    if descriptor >= 0 { return descriptor }
    guard length == MemoryLayout.size(ofValue: code), code > 0 else {
      throw ValueError("vehicled-can@.service failed; see: journalctl -u 'vehicled-can@*'")
    }
    throw ValueError(code == EAFNOSUPPORT ? canUnsupported : errnoMessage(code))
  }

  private func connect() -> CInt {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return -1 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let connection = socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(connection, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
    if result == 0 { return connection }
    close(connection)
    return -1
  }

  /// Passes a new socket over standard input, and exits.
  static func main() -> Never {
    let descriptor = clinux_can_socket()
    var code = -min(0, descriptor)
    exit(clinux_send(STDIN_FILENO, &code, MemoryLayout.size(ofValue: code), descriptor >= 0 ? descriptor : -1) == 0 ? 0 : 1)
  }
}
