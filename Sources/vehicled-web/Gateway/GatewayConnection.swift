// One WebSocket of a page and its Varlink connection: checks the calls, and passes bytes on. What one side does not take, the other side is
// not asked for, so that little is held here: the limits are those of the two channels' send buffers.

import NIOCore
import NIOPosix
import NIOWebSocket
import Protocols
import ServiceRuntime
import Varlink

final class GatewayConnection: WebSocketOwner, ServiceOwner {
  private let service: GatewayService
  private let path: String
  private let session: Session
  private let loop: any NIOCore.EventLoop
  /// Of the daemon; nil for other services.
  private let monitor: DaemonMonitor?
  private weak var browser: WebSocketHandler?
  private weak var socket: ServiceHandler?
  private var calls = CallQueue()
  private var splitter = ReplySplitter()
  private var scanner = ReplyScanner()
  /// Messages that have arrived together with one that had to wait. Meanwhile nothing is read.
  private var waiting: [ByteBuffer] = []
  /// Set while messages wait because the session makes calls too fast; otherwise they wait for replies.
  private var resumption: Scheduled<Void>?
  private var isClosed = false

  /// `path`: the socket of the service.
  init(_ service: GatewayService, _ path: String, _ session: Session, monitor: DaemonMonitor?, loop: any NIOCore.EventLoop) {
    (self.service, self.path, self.session, self.monitor, self.loop) = (service, path, session, monitor, loop)
  }

  /// The handler of the browser's channel.
  func makeHandler() -> WebSocketHandler {
    let handler = WebSocketHandler(self)
    browser = handler
    return handler
  }

  // MARK: The browser

  func opened() {
    session.add(self) { [weak self] in self?.browser?.close(.refused($0)) }
    let close = { [weak self] in self?.browser?.close(.unavailable(DaemonMonitor.reason)) ?? () }
    if monitor?.isHung == true { return close() }
    monitor?.add(self, close: close)
    do throws(ValueError) { try connect() } catch {
      browser?.close(.unavailable(error.description))
    }
  }

  var acceptsMessages: Bool {
    waiting.isEmpty && !calls.isFull && browser?.isWritable == true && socket?.isWritable == true
  }

  func received(_ message: ByteBuffer) throws(CloseReason) {
    guard waiting.isEmpty, !calls.isFull else { return waiting.append(message) }
    let now = SystemClock.boot
    if session.isExpired(at: now) { throw .refused("the session has expired") }
    if let delay = session.takeCall(at: now) {
      waiting.append(message)
      return resume(after: delay)
    }
    try call(message)
  }

  /// Handles the messages that wait. The ones that are counted later wait for their turn again.
  private func resumeCalls() {
    let messages = waiting
    waiting = []
    do throws(CloseReason) {
      for message in messages where !isClosed { try received(message) }
      browser?.resumeReading()
    } catch {
      browser?.close(error)
    }
  }

  private func resume(after delay: Nanoseconds) {
    let connection = NIOLoopBound(self, eventLoop: loop)
    resumption = loop.scheduleTask(in: .nanoseconds(delay)) {
      connection.value.resumption = nil
      connection.value.resumeCalls()
    }
  }

  private func call(_ message: ByteBuffer) throws(CloseReason) {
    if calls.isStreaming { throw .refused("a call with \"more\" runs on this connection; open another one for further calls") }
    let call: VarlinkCall
    do throws(VarlinkViolation) { call = try VarlinkCall(Array(message.readableBytesView)) } catch {
      throw CloseReason(.protocolError, error.description)
    }
    if let error = CallRules.refusal(of: call, to: service, session.rights, withheld: session.withheld) {
      // A call that is oneway has no reply.
      guard !call.oneway else { return }
      return send(calls.refused(ByteBuffer(bytes: VarlinkReply.message(error).dropLast())))
    }
    var bytes = message
    bytes.writeInteger(UInt8(0))
    if !call.oneway { calls.forwarded(streams: call.more) }
    socket?.send(bytes)
  }

  private func send(_ errors: [ByteBuffer]) {
    for error in errors { browser?.send(WebSocketFrame(fin: true, opcode: .text, data: error)) }
    browser?.flush()
  }

  func writabilityChanged() {
    socket?.resumeReading()
    browser?.resumeReading()
  }

  func closed() {
    isClosed = true
    resumption?.cancel()
    session.remove(self)
    monitor?.remove(self)
    socket?.close()
  }

  // MARK: The service

  private func connect() throws(ValueError) {
    let descriptor = try UnixSocket.connect(to: path)
    open(descriptor, on: loop) { $0.socket = $1 }.assumeIsolated().whenComplete { [self] result in
      switch result {
      case .success: isClosed ? socket?.close() : browser?.resumeReading()
      case .failure(let error): browser?.close(.unavailable("cannot use \(path): \(error)"))
      }
    }
  }

  var acceptsReplies: Bool { browser?.isWritable == true }

  func received(reply: ByteBuffer) {
    monitor?.heard()
    for frame in splitter.frames(reply) {
      browser?.send(frame)
      guard let continues = scanner.scan(frame) else { continue }
      for error in calls.replied(continues: continues) { browser?.send(WebSocketFrame(fin: true, opcode: .text, data: error)) }
    }
  }

  func repliesEnded() {
    browser?.flush()
    if waiting.isEmpty { browser?.resumeReading() } else if !calls.isFull, resumption == nil { resumeCalls() }
  }

  func serviceWritabilityChanged() { browser?.resumeReading() }

  func serviceClosed() { browser?.close(CloseReason(.unexpectedServerError, "\(service.program) has closed the connection")) }
}
