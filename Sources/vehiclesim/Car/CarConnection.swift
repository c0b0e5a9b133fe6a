// One client of the simulated car, on either of its ports. End of file is passed to the car, which as built ignores it; the
// descriptor then stays open and is no longer polled.

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
  /// The client has closed its side.
  private var hasEnded = false

  /// Takes ownership of the descriptor.
  init(_ file: Int32, link: LinkName, name: String, server: CarServer, log: ActivityLog) {
    (self.file, self.link, self.name, self.server, self.log) = (file, link, name, server, log)
  }

  private var isReading: Bool { !hasEnded && server.reads(link) }
  // A descriptor whose other end has closed is always ready, so it is not polled.
  override var descriptor: Int32 { isReading || pending != nil ? file : -1 }
  override var interest: Int16 { Int16(pending != nil ? POLLOUT : 0) | Int16(isReading ? POLLIN : 0) }

  override func ready(_ events: Int16, at now: Instant) {
    if pending != nil, events & Int16(POLLOUT | POLLHUP | POLLERR) != 0 { flush(at: now) }
    if !isClosed, isReading, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 { receive(at: now) }
  }

  private func receive(at now: Instant) {
    let count = read(file, &buffer, buffer.count)
    if count > 0 {
      let bytes = Array(buffer.prefix(count))
      log.write(name, "< \(PeerConnection.readable(bytes))")
      server.give(.received(link, bytes), at: now)
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      hasEnded = true
      log.write(name, "closed by the client")
      server.clientClosed(link, at: now)
    }
  }

  /// Sends bytes, and reports to the car when the kernel has them or the send has failed.
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
        server.give(.sent(id, failure: count < 0 ? "connection closed" : nil), at: now)
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
