// One stream connection of a machine: received bytes, and one send at a time.

import Glibc
import Protocols
import ServiceRuntime

/// The owner of connections.
protocol ConnectionOwner: AnyObject {
  func feed(_ input: Input, at now: Instant)
  func received(_ bytes: [UInt8], on connection: Connection, at now: Instant)
  /// Whether bytes of this connection are read now.
  func mayRead(from connection: Connection) -> Bool
  /// Handles the end of the input: the other side has closed the connection or its sending direction.
  func ended(_ connection: Connection, at now: Instant)
}

final class Connection: EventSource {
  let link: LinkName
  let name: String
  /// Whether no client has the pseudo-terminal open, so that sent bytes are discarded.
  var hasNoReader = false
  /// Whether the other side has closed its sending direction; it may still read.
  private(set) var hasEnded = false
  /// Whether reading or writing has failed.
  private(set) var hasFailed = false
  private let file: Int32
  private let owner: any ConnectionOwner
  private var buffer: [UInt8]
  /// The send in flight and its remaining bytes.
  private var pending: (bytes: ArraySlice<UInt8>, id: SendID)?
  private var onConnect: ((_ failure: String?) -> Void)?

  /// Takes ownership of the descriptor. `readSize` is the maximum number of bytes per read. For a socket that is still connecting,
  /// `onConnect` is called with an error message, or nil on success.
  init(_ file: Int32, link: LinkName, name: String, owner: any ConnectionOwner, readSize: Int = 1024, onConnect: ((String?) -> Void)? = nil)
  {
    (self.file, self.link, self.name, self.owner, self.onConnect) = (file, link, name, owner, onConnect)
    buffer = [UInt8](repeating: 0, count: readSize)
  }

  var isConnecting: Bool { onConnect != nil }
  /// The send in flight.
  var sending: SendID? { pending?.id }

  private var isReading: Bool { !isConnecting && !hasEnded && owner.mayRead(from: self) }
  // A descriptor whose other end has closed is always ready, so it is polled only while there is something to read or write.
  override var descriptor: Int32 { interest == 0 ? -1 : file }
  override var interest: Int16 { Int16(pending != nil || isConnecting ? POLLOUT : 0) | Int16(isReading ? POLLIN : 0) }

  override func timerFired(at now: Instant) { owner.feed(.wake, at: now) }

  override func ready(_ events: Int16, at now: Instant) {
    if isConnecting { return finishConnecting() }
    if pending != nil, events & Int16(POLLOUT | POLLHUP | POLLERR) != 0 { flush(at: now) }
    if !isClosed, isReading, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 { receive(at: now) }
  }

  private func finishConnecting() {
    let code = TCPAddress.connectError(of: file)
    let onConnect = onConnect
    if code == 0 { self.onConnect = nil }
    onConnect?(code == 0 ? nil : String(cString: strerror(code)))
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

  /// Sends bytes, and reports to the owner once the kernel has accepted all of them or the send has failed.
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
        owner.feed(.sent(id, failure: count < 0 ? "connection closed" : nil), at: now)
      }
    }
  }

  /// Discards bytes that the client has not read, and reports them as sent.
  func discardOutput(at now: Instant) {
    guard let id = pending?.id else { return }
    pending = nil
    owner.feed(.sent(id, failure: nil), at: now)
  }

  /// Discards unread input. Otherwise the kernel resets the socket when it is closed, and the client could lose the reply.
  func discardInput() {
    for _ in 0..<64 where recv(file, &buffer, buffer.count, Int32(MSG_DONTWAIT)) <= 0 { return }
  }

  /// Closes the connection. If `abruptly` is true, sends a TCP reset.
  func close(abruptly: Bool = false) {
    guard !isClosed else { return }
    isClosed = true
    if abruptly { TCPAddress.reset(file) } else { Glibc.close(file) }
  }
}
