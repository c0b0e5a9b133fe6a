// One HTTP connection: assembles requests, and sends replies in their order. A request for a WebSocket replaces the handlers of HTTP by
// those of WebSocket; NIO's own handler for upgrades accepts only the first request of a connection, but reverse proxies reuse connections.
// Source: RFC 9112; RFC 6455, section 4.2.

import NIOCore
import NIOHTTP1
import NIOWebSocket

struct Request {
  let head: HTTPRequestHead
  /// The path, without the query.
  let path: String
  var body = ByteBuffer()

  /// The subprotocol that browsers offer together with one that is the key of the session, because they add no headers of a page to a
  /// handshake.
  static let subprotocol = "vehicled"
  private static let keyPrefix = "key-"

  init(_ head: HTTPRequestHead) {
    self.head = head
    path = String(head.uri.prefix { $0 != "?" })
  }

  var subprotocols: [Substring] { head.headers[canonicalForm: "Sec-WebSocket-Protocol"] }

  /// The key of the session (`SessionSecret`), as the header `Vehicled-Key` or as a subprotocol.
  var key: String? {
    head.headers.first(name: "Vehicled-Key")
      ?? subprotocols.first { $0.hasPrefix(Self.keyPrefix) }.map { String($0.dropFirst(Self.keyPrefix.count)) }
  }
}

/// What to do about a request.
enum Answer {
  case reply(Reply)
  case later(EventLoopFuture<Reply>)
  /// Becomes a WebSocket.
  case upgrade(WebSocketHandler)
}

final class HTTPHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  /// The maximum length of a body, in bytes.
  private static let maxBody = 4 << 10

  private let requestGuard: RequestGuard
  private let answer: (Request) -> Answer
  private let upgraded: (any Channel) -> Void
  private var request: Request?
  private var isTooLarge = false

  private init(
    _ requestGuard: RequestGuard, answer: @escaping (Request) -> Answer, upgraded: @escaping (any Channel) -> Void
  ) {
    (self.requestGuard, self.answer, self.upgraded) = (requestGuard, answer, upgraded)
  }

  /// Adds the handlers of HTTP to a new channel.
  static func configure(
    _ channel: any Channel, _ connections: ConnectionTable, answer: @escaping (Request) -> Answer
  ) throws {
    var limits = NIOHTTPDecoderLimitConfiguration()
    (limits.maxHeaderFieldSize, limits.maxHeaderListSize, limits.maxHeaderFieldCount) = (8 << 10, 16 << 10, 64)
    let requestGuard = RequestGuard(connections)
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandlers([
      requestGuard, HTTPResponseEncoder(),
      ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits)),
      HTTPServerPipelineHandler(), HTTPServerProtocolErrorHandler(),
      HTTPHandler(requestGuard, answer: answer) { connections.upgraded($0) },
    ])
    let table = NIOLoopBound(connections, eventLoop: channel.eventLoop)
    channel.closeFuture.whenComplete { _ in table.value.remove(channel) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch Self.unwrapInboundIn(data) {
    case .head(let head): (request, isTooLarge) = (Request(head), false)
    case .body(var part):
      if (request?.body.readableBytes ?? 0) + part.readableBytes > Self.maxBody { isTooLarge = true }
      if !isTooLarge { request?.body.writeBuffer(&part) }
    case .end:
      guard let request else { return }
      self.request = nil
      requestGuard.requestCompleted(context.channel)
      isTooLarge
        ? send(.text(.payloadTooLarge, "the body is longer than \(Self.maxBody) bytes"), to: request, context) : handle(request, context)
    }
  }

  private func handle(_ request: Request, _ context: ChannelHandlerContext) {
    switch answer(request) {
    case .reply(let reply): send(reply, to: request, context)
    case .later(let future):
      future.hop(to: context.eventLoop).assumeIsolated().whenComplete { [self] result in
        guard context.channel.isActive else { return }
        send((try? result.get()) ?? .text(.internalServerError, "the request failed"), to: request, context)
      }
    case .upgrade(let handler): upgrade(request, handler, context)
    }
  }

  private func send(_ reply: Reply, to request: Request, _ context: ChannelHandlerContext) {
    // The decoder stops after a request to upgrade.
    let keepAlive = request.head.isKeepAlive && !request.head.headers.contains(name: "Upgrade")
    context.write(Self.wrapOutboundOut(.head(reply.head(request.head.version, keepAlive: keepAlive))), promise: nil)
    if request.head.method != .HEAD, reply.body.readableBytes > 0 {
      context.write(Self.wrapOutboundOut(.body(.byteBuffer(reply.body))), promise: nil)
    }
    let channel = context.channel
    context.writeAndFlush(Self.wrapOutboundOut(.end(nil))).whenComplete { _ in if !keepAlive { channel.close(promise: nil) } }
  }

  private func upgrade(_ request: Request, _ handler: WebSocketHandler, _ context: ChannelHandlerContext) {
    let isOffered = request.subprotocols.contains { $0 == Request.subprotocol }
    let headers: HTTPHeaders = isOffered ? ["Sec-WebSocket-Protocol": Request.subprotocol] : [:]
    // NIO's upgrader computes the other headers of the handshake.
    let upgrader = NIOWebSocketServerUpgrader(
      shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(headers) },
      upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })
    upgrader.buildUpgradeResponse(channel: context.channel, upgradeRequest: request.head, initialResponseHeaders: [:]).assumeIsolated()
      .whenComplete { [self] result in
        switch result {
        case .success(let headers): switchProtocol(headers, handler, context)
        case .failure: send(.text(.badRequest, "the handshake is invalid; use WebSocket version 13"), to: request, context)
        }
      }
  }

  private func switchProtocol(_ headers: HTTPHeaders, _ handler: WebSocketHandler, _ context: ChannelHandlerContext) {
    let head = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
    context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
    context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: nil)
    upgraded(context.channel)
    let pipeline = context.channel.pipeline.syncOperations
    do {
      for handler in [
        requestGuard, try pipeline.handler(type: HTTPServerPipelineHandler.self),
        try pipeline.handler(type: HTTPServerProtocolErrorHandler.self), try pipeline.handler(type: HTTPResponseEncoder.self),
      ] as [any RemovableChannelHandler] { pipeline.removeHandler(handler, promise: nil) }
      try pipeline.addHandlers([
        WebSocketFrameEncoder(), ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: WebSocketHandler.maxFrame)), handler,
      ])
      pipeline.removeHandler(self, promise: nil)
      // Removed last: it passes on what the browser has sent since.
      pipeline.removeHandler(try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self), promise: nil)
    } catch {
      context.close(promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
