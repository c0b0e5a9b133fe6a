// GET /metrics for Prometheus: who may read it, and one query of the daemon at a time. Source: OpenMetrics 1.0.

import NIOCore
import NIOHTTP1
import NIOPosix
import OpenMetrics
import Protocols
import ServiceRuntime
import Varlink

final class MetricsPage {
  private static let contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

  private let token: Token
  /// The devices whose position is included.
  private let positions: [String]
  private let daemon: String
  private let loop: any NIOCore.EventLoop
  private var query: EventLoopFuture<Reply>?

  /// `daemon`: the path of its socket.
  init(_ token: Token, positions: [String], daemon: String, loop: any NIOCore.EventLoop) {
    (self.token, self.positions, self.daemon, self.loop) = (token, positions, daemon, loop)
  }

  func answer(_ request: Request) -> Answer {
    guard [.GET, .HEAD].contains(request.head.method) else { return .reply(WebServer.methodNotAllowed("GET, HEAD")) }
    let given = request.head.headers.first(name: "Authorization").map { $0.split(separator: " ", maxSplits: 1) } ?? []
    guard given.count == 2, given[0].lowercased() == "bearer", token.matches(String(given[1])) else {
      return .reply(.text(.unauthorized, "send the bearer token of [metrics] in web.toml", ["WWW-Authenticate": "Bearer"]))
    }
    // Requests that arrive meanwhile share the query.
    if let query { return .later(query) }
    let query = MetricsQuery.run(daemon, loop: loop) { [positions] devices, schemas, statistics in
      let lines = OpenMetrics.text(OpenMetrics.published(devices, with: positions), schemas, statistics, withTimes: true)
      return Reply(
        .ok, ["Content-Type": Self.contentType, "Cache-Control": "no-store"], body: ByteBuffer(string: lines.joined(separator: "\n") + "\n")
      )
    }
    self.query = query
    query.assumeIsolated().whenComplete { [weak self] _ in self?.query = nil }
    return .later(query)
  }
}

/// Three calls of the daemon on one connection: values, declarations and statistics.
private final class MetricsQuery: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  typealias Format = (_ devices: [Contract.Device], _ schemas: [Contract.Schema], _ statistics: [Contract.Statistic]) -> Reply

  private static let timeout = TimeAmount.seconds(5)

  private let promise: EventLoopPromise<Reply>
  private let format: Format
  private var framing = VarlinkFraming(limit: VarlinkFraming.replyLimit)
  private var replies: [VarlinkReply] = []
  private var isDone = false

  private init(_ promise: EventLoopPromise<Reply>, _ format: @escaping Format) { (self.promise, self.format) = (promise, format) }

  /// The formatted replies; 503 with the cause if there are none.
  static func run(_ path: String, loop: any NIOCore.EventLoop, format: @escaping Format) -> EventLoopFuture<Reply> {
    let promise = loop.makePromise(of: Reply.self)
    let query = MetricsQuery(promise, format)
    do {
      let calls =
        try VarlinkCall.message(Contract.Status.self, .init()) + VarlinkCall.message(Contract.Describe.self, .init())
        + VarlinkCall.message(Contract.Statistics.self, .init())
      let descriptor = try UnixSocket.connect(to: path)
      let handler = NIOLoopBound(query, eventLoop: loop)
      ClientBootstrap(group: loop).channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(handler.value) }
      }.withConnectedSocket(descriptor).assumeIsolated().whenComplete { result in
        switch result {
        case .success(let channel):
          channel.writeAndFlush(ByteBuffer(bytes: calls), promise: nil)
          loop.scheduleTask(in: timeout) { channel.close(promise: nil) }
        case .failure(let error): handler.value.fail("cannot use \(path): \(error)")
        }
      }
    } catch {
      query.fail("\(error)")
    }
    return promise.futureResult
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    framing.append(Self.unwrapInboundIn(data).readableBytesView)
    do {
      while let reply = try framing.next({ try VarlinkReply($0) }) { replies.append(reply) }
      guard replies.count >= 3 else { return }
      if let error = replies.compactMap(\.error).first { return fail("vehicled has rejected the query: \(error)") }
      let reply = format(
        try replies[0].parameters(as: Contract.Status.Result.self).devices,
        try replies[1].parameters(as: Contract.Describe.Result.self).schemas,
        try replies[2].parameters(as: Contract.Statistics.Result.self).statistics)
      finish(reply)
    } catch {
      fail("the reply of vehicled is invalid: \(error)")
    }
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) { fail("vehicled has not replied") }

  private func fail(_ text: String) { finish(.text(.serviceUnavailable, text)) }

  private func finish(_ reply: Reply) {
    guard !isDone else { return }
    isDone = true
    promise.succeed(reply)
  }
}
