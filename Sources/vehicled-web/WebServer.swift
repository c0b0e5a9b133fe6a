// What the server does about each request: files of the page, sessions, WebSockets, metrics. Runs on the event loop.

import Glibc
import Logging
import NIOCore
import NIOHTTP1
import Protocols
import ServiceRuntime

final class WebServer {
  private static let json: HTTPHeaders = ["Content-Type": "application/json", "Cache-Control": "no-store"]

  private let files: PageFiles
  private let check: RequestCheck
  private let sessions: Sessions
  private let sockets: [GatewayService: String]
  private let metrics: MetricsPage?
  private let monitor: DaemonMonitor?
  private let cookieName: String
  private let loop: any NIOCore.EventLoop
  private let logger = Logger(label: "vehicled-web")
  let connections = ConnectionTable()

  /// `port`: the TCP port; nil for a Unix socket. `sockets`: those of the services.
  init(
    files: PageFiles, port: Int?, origins: [Origin], sessions: Sessions, sockets: [GatewayService: String], metrics: MetricsPage?,
    loop: any NIOCore.EventLoop
  ) {
    (self.files, self.sessions, self.sockets, self.metrics, self.loop) = (files, sessions, sockets, metrics, loop)
    check = RequestCheck(port: port, origins: origins)
    monitor = sockets[.daemon].map { DaemonMonitor($0, loop: loop) }
    // Browsers send cookies to all ports of a host; each server needs a name of its own, and a key as well (SessionSecret).
    cookieName = "vehicled-web\(port.map { "-\($0)" } ?? "")"
  }

  func answer(_ request: Request) -> Answer {
    if let problem = check.hostProblem(request.head.headers) { return .reply(problem) }
    if let service = GatewayService.allCases.first(where: { $0.path == request.path }) { return connect(service, request) }
    switch request.path {
    case "/session": return .reply(session(request))
    case "/metrics": if let metrics { return metrics.answer(request) }
    default: break
    }
    guard let reply = files.reply(request.path, request.head.headers) else { return .reply(.text(.notFound, "there is no such page")) }
    return .reply([.GET, .HEAD].contains(request.head.method) ? reply : Self.methodNotAllowed("GET, HEAD"))
  }

  static func methodNotAllowed(_ allowed: String) -> Reply {
    .text(.methodNotAllowed, "the method is not allowed; use \(allowed)", ["Allow": allowed])
  }

  // MARK: Sessions

  private func session(_ request: Request) -> Reply {
    switch request.head.method {
    case .GET:
      guard let session = session(of: request) else { return Self.notSignedIn }
      return Reply(.ok, Self.json, body: ByteBuffer(string: description(of: session).text))
    case .POST: return check.originProblem(request.head.headers) ?? signIn(request)
    case .DELETE:
      if let problem = check.originProblem(request.head.headers) { return problem }
      if let secret = secret(of: request) { sessions.end(secret, "signed out") }
      return Reply(.noContent, ["Set-Cookie": setCookie("", maxAge: 0, request)])
    default: return Self.methodNotAllowed("GET, POST, DELETE")
    }
  }

  private static let notSignedIn = Reply.text(
    .unauthorized, "not signed in; open the link that vehicled-web prints, or one with the token of a kiosk")

  private func description(of session: Session) -> JSON {
    .members([
      "version": .string(Protocols.version), "observe": .bool(true),
      "control": .array(session.rights.control.sorted().map { .string($0) }),
      "withheld": .array(session.withheld.sorted().map { .string($0) }),
      "history": .bool(sockets[.history].map { access($0, F_OK) == 0 } ?? false), "kiosk": .bool(session.rights.isKiosk),
    ])
  }

  private func signIn(_ request: Request) -> Reply {
    guard let token = JSON(String(buffer: request.body))?["token"]?.string else {
      return .text(.badRequest, "the body is not {\"token\": \"…\"}")
    }
    switch sessions.signIn(token, replacing: secret(of: request), at: SystemClock.boot) {
    case .accepted(let owner, let secret):
      logger.notice("a browser has signed in with \(owner)")
      var headers = Self.json
      headers.add(name: "Set-Cookie", value: setCookie(secret.cookie, maxAge: Session.lifetime, request))
      return Reply(.ok, headers, body: ByteBuffer(string: JSON.members(["key": .string(secret.key)]).text))
    case .rejected:
      logger.notice("a browser has presented an invalid token")
      return .text(.unauthorized, "the token is invalid, was used, or has expired; the terminal of vehicled-web shows a new link")
    case .limited: return .text(.tooManyRequests, "the token is invalid, and many were in the last minute", ["Retry-After": "60"])
    }
  }

  private func setCookie(_ value: String, maxAge: Int64, _ request: Request) -> String {
    "\(cookieName)=\(value); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(maxAge)\(check.isSecure(request.head.headers) ? "; Secure" : "")"
  }

  private func secret(of request: Request) -> SessionSecret? {
    let prefix = cookieName + "="
    let cookie = request.head.headers[canonicalForm: "Cookie"].lazy.flatMap { $0.split(separator: ";") }.map { $0.drop { $0 == " " } }
      .first { $0.hasPrefix(prefix) }
    guard let cookie, let key = request.key else { return nil }
    return SessionSecret(cookie: String(cookie.dropFirst(prefix.count)), key: key)
  }

  private func session(of request: Request) -> Session? { sessions.session(secret(of: request), at: SystemClock.boot) }

  // MARK: WebSockets

  private func connect(_ service: GatewayService, _ request: Request) -> Answer {
    guard request.head.method == .GET, request.head.headers[canonicalForm: "Upgrade"].contains(where: { $0.lowercased() == "websocket" })
    else {
      return .reply(.text(.upgradeRequired, "use a WebSocket", ["Upgrade": "websocket"]))
    }
    if let problem = check.originProblem(request.head.headers) { return .reply(problem) }
    guard let session = session(of: request), let path = sockets[service] else { return .reply(Self.notSignedIn) }
    guard session.canConnect, connections.canUpgrade else {
      return .reply(.text(.tooManyRequests, "too many WebSockets; close other pages"))
    }
    let connection = GatewayConnection(service, path, session, monitor: service == .daemon ? monitor : nil, loop: loop)
    return .upgrade(connection.makeHandler())
  }
}
