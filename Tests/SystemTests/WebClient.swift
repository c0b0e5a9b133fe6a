// A browser for the tests of vehicled-web, which can also send what no browser would.

import CLinux
import Foundation
import Testing

/// A connection to the web server, for arbitrary bytes.
final class HTTPConnection {
  struct Reply {
    let status: Int
    let headers: [String: String]
    let body: String
  }

  let descriptor: Int32
  private var buffer: [UInt8] = []

  init(port: UInt16) throws {
    descriptor = try connection(to: port)
  }

  deinit { close(descriptor) }

  /// Sends bytes; false if the server has disconnected.
  @discardableResult func send(_ bytes: [UInt8]) -> Bool { sendAll(bytes, to: descriptor) }

  @discardableResult func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Reads more; false at the end of the connection.
  private func receive() -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65536)
    let count = recv(descriptor, &chunk, chunk.count, 0)
    if count > 0 { buffer += chunk[..<count] }
    return count > 0
  }

  /// Whether the server closes the connection, after any further bytes.
  func isClosed() -> Bool {
    while receive() {}
    return errno != EAGAIN
  }

  func read(_ count: Int) -> [UInt8]? {
    while buffer.count < count { guard receive() else { return nil } }
    defer { buffer.removeFirst(count) }
    return Array(buffer[..<count])
  }

  /// The next reply; nil if the server disconnects before its end.
  func reply(to method: String = "GET") -> Reply? {
    let end = Array("\r\n\r\n".utf8)
    var position: Int?
    while true {
      position = buffer.indices.first { buffer[$0...].starts(with: end) }
      if position != nil { break }
      guard receive() else { return nil }
    }
    guard let position, let head = read(position + 4) else { return nil }
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    let pairs = lines.dropFirst().map { $0.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) } }
    let headers = Dictionary(pairs.filter { $0.count == 2 }.map { ($0[0].lowercased(), $0[1]) }) { $0 + "\n" + $1 }
    let status = lines.first.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") } ?? 0
    let length = method == "HEAD" ? 0 : headers["content-length"].flatMap { Int($0) } ?? 0
    guard let body = read(length) else { return nil }
    return Reply(status: status, headers: headers, body: String(decoding: body, as: UTF8.self))
  }
}

/// The web server of a test, and requests to it.
final class WebRig {
  let rig: Rig
  let port: UInt16
  let program: Program
  var origin: String { "http://127.0.0.1:\(port)" }
  private(set) var cookie = ""
  private(set) var key = ""
  /// The headers that prove the session.
  var credentials: [String: String?] { ["Cookie": cookie, "Vehicled-Key": key] }

  /// Starts the server beside the daemon of a rig; `signsIn`: with the printed link.
  init(_ rig: Rig, _ arguments: [String] = ["--control", "ev"], signsIn: Bool = true, environment: [String: String] = [:]) throws {
    self.rig = rig
    port = try freePort()
    let page = "\(rig.directory)/page"
    try FileManager.default.createDirectory(atPath: page, withIntermediateDirectories: true)
    try rig.write("<!doctype html><title>vehicled</title>", to: page + "/index.html")
    program = try rig.start(
      "vehicled-web",
      ["--listen", "127.0.0.1:\(port)", "--daemon", rig.socket, "--history", "\(rig.directory)/history.socket", "--files", page]
        + arguments,
      environment: environment)
    let (program, isService) = (program, arguments.contains("--config"))
    let isReady = wait { !program.isRunning || program.stderr.contains("serving on") && (isService || program.stdout.contains("\n")) }
    try #require(isReady && program.isRunning, "\(program.stderr)")
    if signsIn { try signIn(token) }
  }

  /// The token of the last printed link.
  var token: String { program.stdout.split(separator: "\n").last?.components(separatedBy: "#token=").last ?? "" }

  func signIn(_ token: String) throws {
    let reply = try request("POST", "/session", ["Origin": origin], body: "{\"token\": \"\(token)\"}")
    try #require(reply.status == 200, "\(reply)")
    cookie = reply.headers["set-cookie"]?.split(separator: ";").first.map(String.init) ?? ""
    key = try Self.key(reply)
  }

  /// The key in the reply to a sign-in.
  static func key(_ reply: HTTPConnection.Reply) throws -> String {
    try #require(try JSONDecoder().decode([String: String].self, from: Data(reply.body.utf8))["key"])
  }

  /// The text of a request with these headers; those that are nil are left out.
  func text(_ method: String, _ path: String, _ headers: [String: String?] = [:], body: String = "") -> String {
    var all: [String: String?] = ["Host": "127.0.0.1:\(port)"]
    if !body.isEmpty { all["Content-Length"] = "\(body.utf8.count)" }
    all.merge(headers) { $1 }
    let lines = all.compactMap { name, value in value.map { "\(name): \($0)\r\n" } }
    return "\(method) \(path) HTTP/1.1\r\n\(lines.joined())\r\n\(body)"
  }

  func request(_ method: String, _ path: String, _ headers: [String: String?] = [:], body: String = "") throws -> HTTPConnection.Reply {
    let connection = try HTTPConnection(port: port)
    connection.send(text(method, path, headers, body: body))
    return try #require(connection.reply(to: method), "\(method) \(path): no reply")
  }

  /// The headers of a request for a WebSocket.
  func handshake(cookie: String? = nil) -> [String: String?] {
    [
      "Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Cookie": cookie ?? self.cookie,
      "Vehicled-Key": key,
    ]
  }

  func webSocket(_ path: String = "/varlink/io.vehicled") throws -> WebSocketClient { try WebSocketClient(self, path) }

  /// Resident memory in kB.
  var memory: Int {
    let status = (try? String(contentsOfFile: "/proc/\(program.pid)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return line.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") } ?? 0
  }
}

/// A WebSocket of a page.
final class WebSocketClient {
  enum Event: Equatable {
    case message(String)
    case closed(Int, String)
  }

  let connection: HTTPConnection

  init(_ web: WebRig, _ path: String, early: [UInt8] = []) throws {
    connection = try HTTPConnection(port: web.port)
    connection.send(Array(web.text("GET", path, web.handshake()).utf8) + early)
    let reply = try #require(connection.reply())
    // The example of RFC 6455, section 1.3.
    try #require(reply.status == 101 && reply.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "\(reply)")
  }

  static func frame(_ payload: [UInt8], opcode: UInt8 = 1, fin: Bool = true, masked: Bool = true) -> [UInt8] {
    var bytes: [UInt8] = [(fin ? 0x80 : 0) | opcode]
    let mask: UInt8 = masked ? 0x80 : 0
    switch payload.count {
    case ..<126: bytes.append(mask | UInt8(payload.count))
    case ..<65536: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    default: bytes += [mask | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
    }
    guard masked else { return bytes + payload }
    let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
    return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
  }

  func send(_ text: String, opcode: UInt8 = 1, fin: Bool = true) {
    connection.send(Self.frame(Array(text.utf8), opcode: opcode, fin: fin))
  }

  /// The next message, or the reason for the end; nil if the connection ends without one. Pings are not answered.
  func next() -> Event? {
    var message: [UInt8] = []
    while let head = connection.read(2) {
      var length = Int(head[1])
      if length >= 126 {
        guard let long = connection.read(length == 126 ? 2 : 8) else { return nil }
        length = long.reduce(0) { $0 << 8 | Int($1) }
      }
      guard let payload = connection.read(length) else { return nil }
      switch head[0] & 15 {
      case 8:
        let code = payload.count < 2 ? 0 : Int(payload[0]) << 8 | Int(payload[1])
        return .closed(code, String(decoding: payload.dropFirst(2), as: UTF8.self))
      case 9, 10: continue
      default: message += payload
      }
      if head[0] & 0x80 != 0 { return .message(String(decoding: message, as: UTF8.self)) }
    }
    return nil
  }

  /// The next message as JSON.
  func json() throws -> [String: Any] {
    guard case .message(let text)? = next() else { throw EndOfTest("no message") }
    return try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  /// Makes a call and returns its reply.
  func call(_ method: String, _ parameters: String = "{}") throws -> [String: Any] {
    send("{\"method\":\"\(method)\",\"parameters\":\(parameters)}")
    return try json()
  }

  /// Makes a call and returns the name of its error; nil if it succeeds.
  func error(_ method: String, _ parameters: String = "{}") throws -> String? { try call(method, parameters)["error"] as? String }
}

/// A failure of a test that is not an expectation.
struct EndOfTest: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
