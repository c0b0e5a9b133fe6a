// One connection of a machine that opens its own connections.

import Glibc
import Protocols

final class ClientConnection: EventSource {
  /// Called when the connection is established, or has failed (with the reason).
  var connected: () -> Void = {}
  var failed: (String) -> Void = { _ in }

  private let file: Int32
  private let link: LinkName
  private let log: ActivityLog
  private unowned let client: PeerClient
  private var isConnecting: Bool
  private var buffer = [UInt8](repeating: 0, count: 16_384)
  private var pending: (bytes: ArraySlice<UInt8>, id: SendID)?

  /// Takes ownership of the descriptor.
  init(_ file: Int32, link: LinkName, isConnecting: Bool, client: PeerClient, log: ActivityLog) {
    (self.file, self.link, self.isConnecting, self.client, self.log) = (file, link, isConnecting, client, log)
  }

  override var descriptor: Int32 { file }
  override var interest: Int16 { isConnecting ? Int16(POLLOUT) : Int16(POLLIN) | Int16(pending != nil ? POLLOUT : 0) }

  override func ready(_ events: Int16, at now: Instant) {
    if isConnecting { return finishConnecting(at: now) }
    if pending != nil, events & Int16(POLLOUT | POLLHUP | POLLERR) != 0 { flush(at: now) }
    if !isClosed, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 { receive(at: now) }
  }

  private func finishConnecting(at now: Instant) {
    let code = TCPAddress.outcome(of: file)
    guard code == 0 else {
      isClosed = true
      Glibc.close(file)
      return failed(String(cString: strerror(code)))
    }
    isConnecting = false
    connected()
    log.write(link.description, "up")
    client.give(.linkChanged(link, .up(maximumSend: nil)), at: now)
  }

  private func receive(at now: Instant) {
    let count = read(file, &buffer, buffer.count)
    if count > 0 {
      let bytes = Array(buffer.prefix(count))
      log.write(link.description, "< \(PeerConnection.readable(bytes))")
      client.give(.received(link, bytes), at: now)
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      log.write(link.description, "closed by the other side")
      if let id = pending?.id { client.give(.sent(id, failure: "closed by the other side"), at: now) }
      client.ended(self, link, at: now)
    }
  }

  /// Sends bytes, and reports to the machine when the kernel has them or the send has failed.
  func write(_ bytes: [UInt8], _ id: SendID) {
    log.write(link.description, "> \(PeerConnection.readable(bytes))")
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
        client.give(.sent(id, failure: count < 0 ? "connection closed" : nil), at: now)
      }
    }
  }

  func close(abruptly: Bool) {
    guard !isClosed else { return }
    isClosed = true
    if abruptly { TCPAddress.abort(file) } else { Glibc.close(file) }
    if !isConnecting { log.write(link.description, "down") }
  }
}
