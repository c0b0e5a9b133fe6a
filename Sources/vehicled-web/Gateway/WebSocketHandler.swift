// One WebSocket: messages of the browser, frames to it, pings, and the closing handshake. It reads only while its owner accepts messages.
// Source: RFC 6455.

import NIOCore
import NIOWebSocket
import Protocols
import ServiceRuntime

/// Receives the events of a WebSocket.
protocol WebSocketOwner: AnyObject {
  /// Whether to read from the browser.
  var acceptsMessages: Bool { get }
  /// Called once, when the connection can be used.
  func opened()
  func received(_ message: ByteBuffer) throws(CloseReason)
  /// Whether the browser reads as fast as the service sends has changed.
  func writabilityChanged()
  /// The WebSocket is closed, or is being closed.
  func closed()
}

final class WebSocketHandler: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundIn = Never
  typealias OutboundOut = WebSocketFrame

  /// The maximum length of a frame, in bytes.
  static let maxFrame = MessageAssembler.maxLength
  private static let pingInterval = TimeAmount.seconds(30)
  /// The maximum time without a frame of the browser, which replies to each ping, in seconds.
  private static let timeout: Int64 = 75
  /// How long the browser has to confirm that it closes.
  private static let closeTimeout = TimeAmount.seconds(2)

  private let owner: any WebSocketOwner
  private var context: ChannelHandlerContext?
  private var assembler = MessageAssembler()
  private var heldRead = false
  private var isClosing = false
  private var lastFrame: Instant = 0
  private var pings: RepeatedTask?

  init(_ owner: any WebSocketOwner) { self.owner = owner }

  // MARK: Sending

  var isWritable: Bool { context?.channel.isWritable ?? false }

  /// Sends a frame; `flush` passes the frames so far to the kernel.
  func send(_ frame: WebSocketFrame) {
    guard let context, !isClosing else { return }
    context.write(Self.wrapOutboundOut(frame), promise: nil)
  }

  func flush() { context?.flush() }

  /// Sends the reason, and closes when the browser has confirmed it.
  func close(_ reason: CloseReason) {
    guard let context, !isClosing else { return }
    var data = context.channel.allocator.buffer(capacity: 2 + reason.text.utf8.count)
    data.write(webSocketErrorCode: reason.code)
    data.writeString(reason.text)
    send(WebSocketFrame(fin: true, opcode: .connectionClose, data: data))
    flush()
    beginClosing(context)
    let channel = context.channel
    context.eventLoop.scheduleTask(in: Self.closeTimeout) { channel.close(promise: nil) }
  }

  private func beginClosing(_ context: ChannelHandlerContext) {
    isClosing = true
    pings?.cancel()
    owner.closed()
    // The browser's confirmation is still read.
    resumeReading()
  }

  // MARK: Reading

  func read(context: ChannelHandlerContext) {
    if isClosing || owner.acceptsMessages { context.read() } else { heldRead = true }
  }

  /// Reads on, if the owner accepts messages again.
  func resumeReading() {
    guard heldRead, isClosing || owner.acceptsMessages else { return }
    heldRead = false
    context?.read()
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    lastFrame = SystemClock.monotonic
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    pings = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.pingInterval, delay: Self.pingInterval) { _ in handler.value.ping() }
    owner.opened()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = Self.unwrapInboundIn(data)
    lastFrame = SystemClock.monotonic
    guard !isClosing else {
      if frame.opcode == .connectionClose { context.close(promise: nil) }
      return
    }
    do throws(CloseReason) { try handle(frame, context) } catch { close(error) }
  }

  private func handle(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) throws(CloseReason) {
    guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
      throw CloseReason(.protocolError, "a frame is not masked, or uses an extension")
    }
    switch frame.opcode {
    case .text, .binary, .continuation:
      if let message = try assembler.add(frame) { try owner.received(message) }
    case .ping:
      send(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData))
      flush()
    case .pong: break
    case .connectionClose:
      // The code is returned, as RFC 6455 recommends.
      var data = frame.unmaskedData
      let code = data.readSlice(length: min(2, data.readableBytes)) ?? ByteBuffer()
      context.write(Self.wrapOutboundOut(WebSocketFrame(fin: true, opcode: .connectionClose, data: code)), promise: nil)
      context.flush()
      beginClosing(context)
      context.close(promise: nil)
    default: throw CloseReason(.protocolError, "unknown opcode")
    }
  }

  private func ping() {
    guard let context, !isClosing else { return }
    guard SystemClock.monotonic - lastFrame < Self.timeout * .second else { return context.close(promise: nil) }
    send(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer()))
    flush()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error as? NIOWebSocketError {
    case .invalidFrameLength: close(CloseReason(.messageTooLarge, "the message is longer than \(Self.maxFrame) bytes"))
    case .some: close(CloseReason(.protocolError, "invalid frame"))
    case nil: context.close(promise: nil)
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) { if !isClosing { owner.writabilityChanged() } }

  func channelInactive(context: ChannelHandlerContext) {
    if !isClosing { beginClosing(context) }
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    pings?.cancel()
    self.context = nil
  }
}
