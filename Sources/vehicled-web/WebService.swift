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
  let configuration: WebConfiguration
  /// The rights of browsers that sign in with a printed link; nil to print none.
  let linkRights: Rights?

  /// Serves until SIGINT or SIGTERM.
  func run() throws(ValueError) {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM] { sigaddset(&signals, number) }
    // Blocked before the loop's thread starts, so that sigwait receives them.
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    signal(SIGPIPE, SIG_IGN)
    let files = try PageFiles(configuration.files)
    let tokens = try configuration.tokens.map { token throws(ValueError) in
      Sessions.NamedToken(token: try Self.secret(token.file, of: "token \(token.name)"), rights: token.rights)
    }
    let metrics = try configuration.metrics.map { metrics throws(ValueError) in try Self.secret(metrics.tokenFile, of: "metrics") }
    let (socket, port) = try listen()
    let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
    do {
      try serve(socket, port, files, tokens, metrics, loop).wait()
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

  /// Reads a token, which must be long enough that it cannot be guessed.
  private static func secret(_ file: String, of owner: String) throws(ValueError) -> Token {
    let secret: SecretBytes
    do throws(ValueError) { secret = try SecretFile.read(file) } catch { throw ValueError("\(owner): \(error.description)") }
    guard secret.bytes.count >= Token.minLength else {
      throw ValueError(
        "\(owner): the token in \(quoted(file)) is shorter than \(Token.minLength) characters; create one with: openssl rand -hex 16")
    }
    return Token(secret)
  }

  // MARK: Listening

  /// Returns the listening socket, and its port if it is a TCP socket.
  private func listen() throws(ValueError) -> (CInt, Int?) {
    switch configuration.listen {
    case .unix(let path):
      // Any local user may connect, as to a TCP port; the mode of the directory can restrict that.
      return (
        try UnixSocket.listen(at: path, mode: 0o666, program: "vehicled-web", option: "address with --listen, or listen in web.toml"), nil
      )
    case .tcp(let host, let port):
      do {
        return try Self.bind(SocketAddress(ipAddress: host, port: port))
      } catch {
        let remedy = "stop the program that uses the port, or choose another with --listen, or listen in web.toml"
        throw ValueError("cannot listen on \(configuration.listen): \(errnoMessage((error as? IOError)?.errnoCode ?? errno)); \(remedy)")
      }
    }
  }

  private static func bind(_ address: SocketAddress) throws -> (CInt, Int?) {
    let family = address.protocol == .inet6 ? AF_INET6 : AF_INET
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    var on: CInt = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
    var bound = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = address.withSockAddr { pointer, size in Glibc.bind(descriptor, pointer, socklen_t(size)) }
    guard result == 0, Glibc.listen(descriptor, UnixSocket.backlog) == 0 else {
      let code = errno
      close(descriptor)
      throw IOError(errnoCode: code, reason: "bind")
    }
    _ = withUnsafeMutablePointer(to: &bound) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    let port = withUnsafeBytes(of: bound) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
    return (descriptor, Int(port))
  }

  private func address(_ port: Int?) -> String {
    guard case .tcp(let host, _) = configuration.listen, let port else { return configuration.listen.description }
    return ListenAddress.tcp(host: host, port: port).description
  }

  /// The URL of the page, as a browser opens it.
  private func url(_ port: Int?) -> String { configuration.origins.first?.text ?? "http://\(port == nil ? "localhost" : address(port))" }

  // MARK: Serving

  private func serve(
    _ socket: CInt, _ port: Int?, _ files: PageFiles, _ tokens: [Sessions.NamedToken], _ metricsToken: Token?, _ loop: any NIOCore.EventLoop
  ) -> EventLoopFuture<Void> {
    loop.flatSubmit { [self] in
      let sessions = Sessions(tokens, linkRights: linkRights, at: SystemClock.monotonic) { [url = url(port)] token in
        let line = Array("\(url)/#token=\(token.text)\n".utf8)
        _ = write(STDOUT_FILENO, line, line.count)
      }
      let metrics = metricsToken.map {
        MetricsPage($0, positions: configuration.metrics?.positions ?? [], daemon: configuration.daemon, loop: loop)
      }
      let server = NIOLoopBound(
        WebServer(
          files: files, port: port, origins: configuration.origins, sessions: sessions,
          sockets: [.daemon: configuration.daemon, .history: configuration.history], metrics: metrics, loop: loop),
        eventLoop: loop)
      if let interval = Notify.watchdogInterval {
        loop.scheduleRepeatedTask(initialDelay: .zero, delay: .nanoseconds(interval)) { _ in Notify.send("WATCHDOG=1") }
      }
      return ServerBootstrap(group: loop)
        .childChannelOption(.maxMessagesPerRead, value: 4)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try HTTPHandler.configure(channel, server.value.connections) { server.value.answer($0) }
          }
        }.withBoundSocket(socket).map { _ in }
    }
  }
}
