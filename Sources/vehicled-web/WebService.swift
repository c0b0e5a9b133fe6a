// The program as a whole: creates its parts, listens, and runs until a signal. One thread runs the event loop; the main thread waits for
// signals.

import Glibc
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Protocols
import ServiceRuntime

struct WebService {
  /// How often sessions that have expired are looked for. A WebSocket makes no call after the expiry, but it may still receive replies.
  private static let expiryInterval = TimeAmount.seconds(30)

  let configuration: WebConfiguration
  let secrets: WebSecrets
  /// The rights of browsers that sign in with a printed link; nil to print none.
  let linkRights: Rights?
  /// The directory in which sessions are stored; nil to keep them in memory only.
  let sessionDirectory: String?

  /// Serves until SIGINT or SIGTERM.
  func run() throws(ValueError) {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM] { sigaddset(&signals, number) }
    // Blocked before the loop's thread starts, so that sigwait receives them.
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    signal(SIGPIPE, SIG_IGN)
    let files = try PageFiles(configuration.files ?? WebConfiguration.installedFiles)
    let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
    let server = NIOLoopBoundBox.makeEmptyBox(valueType: WebServer.self, eventLoop: loop)
    let listener = try listen(on: loop, server)
    let port = listener.localAddress?.port
    do {
      try loop.flatSubmit {
        server.value = makeServer(port, files, loop)
        return listener.setOption(.autoRead, value: true)
      }.wait()
    } catch {
      throw ValueError("cannot serve \(configuration.listen): \(error)")
    }
    Logger(label: "vehicled-web").notice("serving on \(address(port)), for \(configuration.daemon)")
    Notify.send("READY=1")
    Notify.status("serving on \(address(port))")
    var number: CInt = 0
    while sigwait(&signals, &number) != 0 {}
    Notify.send("STOPPING=1")
    if case .unix(let path) = configuration.listen { unlink(path) }
  }

  // MARK: Listening

  /// Listens, but accepts no connection until `autoRead` is set, because the checks of requests need the port.
  private func listen(on loop: any NIOCore.EventLoop, _ server: NIOLoopBoundBox<WebServer?>) throws(ValueError) -> any Channel {
    let bootstrap = ServerBootstrap(group: loop).serverChannelOption(.autoRead, value: false)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard let server = server.value else { return }
          try HTTPHandler.configure(channel, server.connections) { server.answer($0) }
        }
      }
    do {
      switch configuration.listen {
      case .tcp(let host, let port): return try bootstrap.bind(to: SocketAddress(ipAddress: host, port: port)).wait()
      case .unix(let path):
        // Any local user may connect, as to a TCP port; the mode of the directory can restrict that.
        let option = "address with --listen, or listen in web.toml"
        return try bootstrap.withBoundSocket(UnixSocket.listen(at: path, mode: 0o666, program: "vehicled-web", option: option)).wait()
      }
    } catch let error as ValueError {
      throw error
    } catch {
      let cause = (error as? IOError).map { errnoMessage($0.errnoCode) } ?? "\(error)"
      let remedy = "stop the program that uses the port, or choose another with --listen, or listen in web.toml"
      throw ValueError("cannot listen on \(configuration.listen): \(cause); \(remedy)")
    }
  }

  private func address(_ port: Int?) -> String {
    guard case .tcp(let host, _) = configuration.listen, let port else { return configuration.listen.description }
    return ListenAddress.tcp(host: host, port: port).description
  }

  /// The URL of the page, as a browser opens it.
  private func url(_ port: Int?) -> String { configuration.origins.first?.text ?? "http://\(port == nil ? "localhost" : address(port))" }

  private func makeServer(_ port: Int?, _ files: PageFiles, _ loop: any NIOCore.EventLoop) -> WebServer {
    let file = sessionDirectory.map(SessionFile.init(in:))
    let sessions = Sessions(
      secrets.tokens, linkRights: linkRights, restored: file?.load() ?? [], at: SystemClock.boot
    ) { [url = url(port)] token in
      let line = Array("\(url)/#token=\(token.text)\n".utf8)
      _ = write(STDOUT_FILENO, line, line.count)
    } store: {
      file?.store($0)
    }
    let expiring = NIOLoopBound(sessions, eventLoop: loop)
    loop.scheduleRepeatedTask(initialDelay: Self.expiryInterval, delay: Self.expiryInterval) { _ in
      expiring.value.endExpired(at: SystemClock.boot)
    }
    let metrics = secrets.metrics.map {
      MetricsPage($0, positions: configuration.metrics?.positions ?? [], daemon: configuration.daemon, loop: loop)
    }
    if let interval = Notify.watchdogInterval {
      loop.scheduleRepeatedTask(initialDelay: .zero, delay: .nanoseconds(interval)) { _ in Notify.send("WATCHDOG=1") }
    }
    return WebServer(
      files: files, port: port, origins: configuration.origins, sessions: sessions,
      sockets: [.daemon: configuration.daemon, .history: configuration.history], metrics: metrics, loop: loop)
  }
}
