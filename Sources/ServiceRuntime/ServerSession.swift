// One client of a server: splits its input into calls and answers them in order, at most one per turn of the loop. It reads no further
// while a complete call waits, so that a client blocks if it sends faster than it is served. A protocol error closes the connection.

import CLinux
import Glibc
import Protocols
import Varlink

final class ServerSession: EventSource {
  /// The maximum number of bytes per read.
  private static let readSize = 8 << 10

  let peer: Peer
  /// Whether the client was not known to have a right when it connected.
  let isGuest: Bool
  private let socket: CInt
  private weak var server: VarlinkServer?
  private let limits: VarlinkServer.Limits
  private var framing: VarlinkFraming
  private var output: [UInt8] = []
  /// The number of bytes of `output` that were sent.
  private var sent = 0
  /// Since when the client has read none of the pending output, or nil if there is none.
  private var unreadSince: Instant?
  /// When the incomplete call at the end of the input began, or nil if there is none.
  private var incompleteSince: Instant?
  private var call: ServerCall?
  /// Whether a complete call waits.
  private var hasCall = false
  /// Whether the client has shut down its sending side. It may still read.
  private var inputEnded = false
  /// Whether the client has closed the connection. Pending oneway calls are still carried out.
  private var isGone = false

  init(_ socket: CInt, peer: Peer, isGuest: Bool, server: VarlinkServer) {
    (self.socket, self.peer, self.isGuest, self.server, limits) = (socket, peer, isGuest, server, server.limits)
    framing = VarlinkFraming(limit: limits.call)
  }

  // MARK: The connection

  override var descriptor: Int32 { isGone || isClosed ? -1 : socket }
  override var interest: Int16 { (mayRead ? Int16(POLLIN) : 0) | (unsent > 0 ? Int16(POLLOUT) : 0) }
  private var mayRead: Bool { !inputEnded && !hasCall && !isClosed }
  private var unsent: Int { output.count - sent }
  /// Whether the client reads fast enough for more replies.
  var hasRoom: Bool { !isClosed && unsent < limits.output }

  override func ready(_ events: Int16, at now: Instant) {
    if events & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 { clientLeft() }
    if events & Int16(POLLOUT) != 0, !isGone {
      let hadRoom = hasRoom
      flush(at: now)
      if !hadRoom, hasRoom { call?.reportRoom() }
    }
    if mayRead, events & Int16(POLLIN) != 0 { receive() }
    advance(at: now)
  }

  override func timerFired(at now: Instant) {
    if let since = incompleteSince, now - since >= limits.incompleteCall {
      return reject("incomplete call for \(limits.incompleteCall / .second) s")
    }
    if let since = unreadSince, now - since >= limits.slowReader {
      server?.log("client connection closed: its replies were not read for \(limits.slowReader / .second) s", peer)
      return close()
    }
    if mayAnswer { answerNext() } else if isGone, mayRead { receive() }
    advance(at: now)
  }

  private func receive() {
    let count = withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 1) { chunk in
      let count = recv(socket, chunk.baseAddress, chunk.count, 0)
      if count > 0 { framing.append(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(chunk)[..<count])) }
      return count
    }
    if count == 0 || count < 0 && errno != EAGAIN && errno != EINTR { inputEnded = true }
  }

  /// Sends a message, at once or when the client reads.
  func write(_ message: [UInt8]) {
    guard !isGone, !isClosed else { return }
    guard unsent + message.count <= limits.output + VarlinkFraming.replyLimit else {
      return reject("more than \((limits.output + VarlinkFraming.replyLimit) >> 20) MiB of replies have not been read")
    }
    if unsent == 0 {
      output = message
      flush(at: SystemClock.monotonic)
    } else {
      output += message
    }
  }

  private func flush(at now: Instant) {
    while unsent > 0 {
      let count = output.withUnsafeBytes { Glibc.send(socket, $0.baseAddress?.advanced(by: sent), $0.count - sent, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { break }
      guard count >= 0 else { return clientLeft() }
      sent += count
      unreadSince = nil
    }
    if unsent == 0 {
      output.removeAll(keepingCapacity: output.capacity <= limits.output)
      (sent, unreadSince) = (0, nil)
    } else {
      if unreadSince == nil { unreadSince = now }
      // What was sent is removed only now and then, so that a long reply is not moved for each part of it.
      if sent > limits.output, sent > output.count / 2 {
        output.removeSubrange(..<sent)
        sent = 0
      }
    }
  }

  /// Handles a connection closed by the client. Its input may still contain oneway calls.
  private func clientLeft() {
    guard !isGone else { return }
    isGone = true
    wake = SystemClock.monotonic  // the disconnect may be noticed while a reply is written, outside of this session's events
    (output, sent, unreadSince) = ([], 0, nil)
    if let call, !call.request.oneway {
      self.call = nil
      call.abandon()
    }
  }

  /// Logs a protocol error of the client and closes the connection.
  private func reject(_ message: String) {
    guard !isClosed else { return }
    server?.log("client connection closed: protocol error: \(message)", peer)
    close()
  }

  /// Closes the connection. From now on the descriptor can belong to another client, so nothing may use it and no call is answered.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    Glibc.close(socket)
    framing = VarlinkFraming()
    (hasCall, output, sent) = (false, [], 0)
    call?.abandon()
    call = nil
    server?.ended(self)
  }

  // MARK: Calls

  private var mayAnswer: Bool { hasCall && call == nil && (hasRoom || isGone) }

  /// Decides the next step: answer a call, read the rest of a closed connection, wait, or end.
  private func advance(at now: Instant) {
    guard !isClosed else { return }
    do { hasCall = try framing.hasMessage() } catch { return reject("call of more than \(limits.call >> 10) KiB") }
    let isIncomplete = framing.pending > 0 && !hasCall && !inputEnded
    incompleteSince = isIncomplete ? incompleteSince ?? now : nil
    if inputEnded, !hasCall, call == nil, unsent == 0 { return close() }
    let deadlines = [incompleteSince.map { $0 + limits.incompleteCall }, unreadSince.map { $0 + limits.slowReader }]
    wake = mayAnswer || isGone && mayRead ? now : deadlines.compactMap { $0 }.min()
  }

  private func answerNext() {
    do {
      // After a disconnect only oneway calls are carried out.
      guard let request = try framing.next({ try VarlinkCall($0) }), request.oneway || !isGone else { return }
      let call = ServerCall(request, session: self)
      self.call = call
      server?.answer(call)
    } catch {
      reject((error as? VarlinkViolation)?.description ?? "\(error)")
    }
  }

  /// Handles the end of a call. The next one waits for the next turn.
  func callEnded(_ ended: ServerCall) {
    guard call === ended else { return }
    call = nil
    advance(at: SystemClock.monotonic)
  }
}
