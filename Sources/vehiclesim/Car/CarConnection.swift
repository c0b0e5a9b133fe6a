// One client of the simulated car, on either of its ports: bytes in, bytes out. End of file is told to the car, which decides
// whether it makes a difference; until then the descriptor stays open, and nobody looks at it. It must never look into bytes.

import Glibc
import Protocols

final class CarConnection: EventSource {
  private let file: Int32
  private let link: LinkName
  private let name: String
  private let log: ActivityLog
  private unowned let server: CarServer
  private var buffer = [UInt8](repeating: 0, count: 1024)
  private var pending: (bytes: ArraySlice<UInt8>, id: SendID)?
  /// The client will say nothing more.
  private var hasEnded = false

  /// Takes over the descriptor.
  init(_ file: Int32, link: LinkName, name: String, server: CarServer, log: ActivityLog) {
    (self.file, self.link, self.name, self.server, self.log) = (file, link, name, server, log)
  }

  private var wantsMore: Bool { !hasEnded && server.reads(link) }
  // A descriptor whose other end is gone is always ready: it is left out.
  override var descriptor: Int32 { wantsMore || pending != nil ? file : -1 }
  override var interest: Int16 { Int16(pending != nil ? POLLOUT : 0) | Int16(wantsMore ? POLLIN : 0) }

  override func ready(_ events: Int16, at now: Instant) {
    if pending != nil, events & Int16(POLLOUT | POLLHUP | POLLERR) != 0 { flush(at: now) }
    if !isClosed, wantsMore, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 { receive(at: now) }
  }

  private func receive(at now: Instant) {
    let count = read(file, &buffer, buffer.count)
    if count > 0 {
      let bytes = Array(buffer.prefix(count))
      log.write(name, "< \(PeerConnection.readable(bytes))")
      server.give(.received(link, bytes), at: now)
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      hasEnded = true
      log.write(name, "the client has closed")
      server.clientClosed(link, at: now)
    }
  }

  /// Sends bytes; the car is told when they are with the kernel, or lost.
  func write(_ bytes: [UInt8], _ id: SendID) {
    log.write(name, bytes.count > 1024 ? "> \(bytes.count) bytes" : "> \(PeerConnection.readable(bytes))")
    pending = (bytes[...], id)
    flush(at: SimulatorClock.now)
  }

  private func flush(at now: Instant) {
    while let (bytes, id) = pending, !isClosed {
      let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EAGAIN { return }
      if count < 0, errno == EINTR { continue }
      pending?.bytes = bytes.dropFirst(max(0, count))
      if count < 0 || count == bytes.count {
        pending = nil
        server.give(.sent(id, failure: count < 0 ? "the client is gone" : nil), at: now)
      }
    }
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    Glibc.close(file)
    log.write(name, "down")
  }
}
