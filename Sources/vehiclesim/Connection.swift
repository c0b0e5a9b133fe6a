// One stream connection of a machine: received bytes, and one send at a time.

import Glibc
import Protocols

/// What serves a connection.
protocol ConnectionOwner: AnyObject {
  func give(_ input: Input, at now: Instant)
  func received(_ bytes: [UInt8], on connection: Connection, at now: Instant)
  func reads(_ connection: Connection) -> Bool
  func ended(_ connection: Connection, at now: Instant)
}

final class Connection: EventSource {
  let link: LinkName
  let name: String
  /// No client has the terminal open: bytes that are sent are discarded.
  var hasNoReader = false
  /// The other side has closed its sending direction, but may still read.
  private(set) var hasEnded = false
  /// Reading or writing has failed.
  private(set) var hasFailed = false
  private let file: Int32
  private let owner: any ConnectionOwner
  private var buffer: [UInt8]
  private var pending: (bytes: ArraySlice<UInt8>, id: SendID)?
  private var connected: ((_ failure: String?) -> Void)?

  /// Takes ownership of the descriptor. `chunk` is the number of bytes to read at once. With `connected`, the descriptor is still
  /// connecting.
  init(_ file: Int32, link: LinkName, name: String, owner: any ConnectionOwner, chunk: Int = 1024, connected: ((String?) -> Void)? = nil) {
    (self.file, self.link, self.name, self.owner, self.connected) = (file, link, name, owner, connected)
    buffer = [UInt8](repeating: 0, count: chunk)
  }

  var isConnecting: Bool { connected != nil }
  /// The send in flight.
  var sending: SendID? { pending?.id }

  private var isReading: Bool { !isConnecting && !hasEnded && owner.reads(self) }
  // A descriptor whose other end has closed is always ready, so it is polled only for what is wanted.
  override var descriptor: Int32 { interest == 0 ? -1 : file }
  override var interest: Int16 { Int16(pending != nil || isConnecting ? POLLOUT : 0) | Int16(isReading ? POLLIN : 0) }

  override func woken(at now: Instant) { owner.give(.wake, at: now) }

  override func ready(_ events: Int16, at now: Instant) {
    if isConnecting { return finishConnecting() }
    if pending != nil, events & Int16(POLLOUT | POLLHUP | POLLERR) != 0 { flush(at: now) }
    if !isClosed, isReading, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 { receive(at: now) }
  }

  private func finishConnecting() {
    let code = TCPAddress.outcome(of: file)
    let connected = connected
    if code == 0 { self.connected = nil }
    connected?(code == 0 ? nil : String(cString: strerror(code)))
  }

  private func receive(at now: Instant) {
    let count = read(file, &buffer, buffer.count)
    if count > 0 {
      hasNoReader = false
      owner.received(Array(buffer.prefix(count)), on: self, at: now)
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      hasEnded = true
      hasFailed = hasFailed || count < 0
      owner.ended(self, at: now)
    }
  }

  /// Sends bytes, and reports to the owner when the kernel has them or the send has failed.
  func send(_ bytes: [UInt8], _ id: SendID, at now: Instant) {
    pending = (bytes[...], id)
    flush(at: now)
  }

  private func flush(at now: Instant) {
    while let (bytes, id) = pending, !isClosed {
      let count = hasNoReader ? bytes.count : bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EAGAIN { return }
      if count < 0, errno == EINTR { continue }
      hasFailed = hasFailed || count < 0
      pending?.bytes = bytes.dropFirst(max(0, count))
      if count < 0 || count == bytes.count {
        pending = nil
        owner.give(.sent(id, failure: count < 0 ? "connection closed" : nil), at: now)
      }
    }
  }

  /// Discards bytes that the client has not read.
  func forget(at now: Instant) {
    guard let id = pending?.id else { return }
    pending = nil
    owner.give(.sent(id, failure: nil), at: now)
  }

  /// Discards unread input: the kernel resets a socket that is closed with unread input, which could lose the reply.
  func discardInput() {
    for _ in 0..<64 where recv(file, &buffer, buffer.count, Int32(MSG_DONTWAIT)) <= 0 { return }
  }

  /// Closes the connection, abruptly with a TCP reset.
  func close(abruptly: Bool = false) {
    guard !isClosed else { return }
    isClosed = true
    if abruptly { TCPAddress.abort(file) } else { Glibc.close(file) }
  }
}
