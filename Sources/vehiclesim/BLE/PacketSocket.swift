// The server's end of the socket of a characteristic (AcquireNotify, AcquireWrite): one packet is one write or notification.

import CLinux
import DBus
import Glibc
import Protocols
import ServiceRuntime

final class PacketSocket: EventSource {
  private let file: Int32
  private let received: ([UInt8]) -> Void
  private let ended: () -> Void

  /// Creates a pair of sockets: the server's end, and the descriptor for the client.
  static func pair(received: @escaping ([UInt8]) -> Void, ended: @escaping () -> Void) -> (PacketSocket, DBusDescriptor)? {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
    return (PacketSocket(ends[0], received: received, ended: ended), DBusDescriptor(owning: ends[1]))
  }

  private init(_ file: Int32, received: @escaping ([UInt8]) -> Void, ended: @escaping () -> Void) {
    self.file = file
    self.received = received
    self.ended = ended
  }

  override var descriptor: Int32 { file }
  override var interest: Int16 { Int16(POLLIN) }

  override func ready(_ events: Int16, at now: Instant) {
    var buffer = [UInt8](repeating: 0, count: 1024)
    let count = read(file, &buffer, buffer.count)
    if count > 0 { return received(Array(buffer.prefix(count))) }
    if count < 0, errno == EAGAIN || errno == EINTR { return }
    close()
    ended()
  }

  /// Sends one packet. It is lost if the client does not read, as a notification would be.
  func send(_ bytes: [UInt8]) { Glibc.send(file, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    Glibc.close(file)
  }
}
