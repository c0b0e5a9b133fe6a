// The HTTP client with good and bad servers on the loopback: responses, errors, redirections, certificates, and limits.

import CCurl
import Foundation
import Glibc
import Protocols
import Synchronization
import Testing

@testable import vehicled

@Suite("HTTP client") @Loop struct HTTPClientTests {
  /// The response to one request.
  private func ask(_ request: HTTPRequest, _ client: HTTPClient = HTTPClient()) async -> HTTPResponse? {
    var answers: [HTTPResponse] = []
    _ = client.send(request) { answers.append($0) }
    #expect(answers.isEmpty, "the response arrives in a later turn")
    _ = await until { !answers.isEmpty }
    client.close()
    return answers.first
  }

  private func failure(_ request: HTTPRequest, _ client: HTTPClient = HTTPClient()) async -> String {
    let response = await ask(request, client)
    if case .failed(let message)? = response { return message }
    return "\(response.map { "\($0)" } ?? "nothing") came"
  }

  @Test func `a response has status, type and body`() async {
    let peer = HTTPPeer(HTTPPeer.answer(#"{"a":1}"#, type: "Application/JSON; charset=utf-8"))
    let request = HTTPRequest("GET", peer.url + "/v1?name=x", headers: ["X-Key": "7", "X-Empty": ""], proxy: "")
    #expect(await ask(request) == .answered(status: 200, type: "application/json", body: Array(#"{"a":1}"#.utf8)))
    let received = peer.requests.first ?? ""
    #expect(received.hasPrefix("GET /v1?name=x HTTP/1.1\r\nHost: 127.0.0.1:\(peer.port)\r\n"), "\(received)")
    #expect(
      received.contains("\r\nUser-Agent: vehicled/\(Protocols.version)\r\n") && received.contains("\r\nAccept-Encoding: identity\r\n"))
    #expect(received.contains("\r\nX-Key: 7\r\n") && received.contains("\r\nX-Empty:\r\n"))
    #expect(!received.contains("Content-Type") && !received.contains("Expect"))
  }

  @Test(arguments: [204, 301, 302, 400, 404, 429, 500, 503]) func `every status is a response, and redirections are not followed`(
    _ status: Int
  ) async {
    let target = HTTPPeer(HTTPPeer.answer("not to be asked"))
    let peer = HTTPPeer("HTTP/1.1 \(status) Word\r\nLocation: \(target.url)/\r\nContent-Length: 0\r\n\r\n")
    #expect(await ask(HTTPRequest("GET", peer.url, proxy: "")) == .answered(status: status, type: nil, body: []))
    #expect(target.requests.isEmpty && peer.requests.count == 1)
  }

  @Test func `a body is sent unchanged`() async {
    let whole = Mutex("")
    let peer = HTTPPeer { connection, request in
      var text = request
      var chunk = [UInt8](repeating: 0, count: 4096)
      while !text.hasSuffix("}"), case let count = read(connection, &chunk, chunk.count), count > 0 {
        text += String(decoding: chunk[..<count], as: UTF8.self)
      }
      whole.withLock { [text] in $0 = text }
      HTTPPeer.send(connection, HTTPPeer.answer("{}"))
    }
    let request = HTTPRequest(
      "POST", peer.url + "/votes", headers: ["Content-Type": "application/json"], body: Array(#"{"vote":1}"#.utf8), proxy: "")
    #expect(await ask(request) == .answered(status: 200, type: "application/json", body: Array("{}".utf8)))
    let received = whole.withLock { $0 }
    #expect(received.hasPrefix("POST /votes HTTP/1.1\r\n") && received.hasSuffix("\r\n\r\n{\"vote\":1}"), "\(received)")
    #expect(received.contains("Content-Type: application/json\r\n") && received.contains("Content-Length: 10\r\n"))
  }

  @Test(arguments: [
    ("text/html", "text/html"), ("TEXT/HTML;charset=x", "text/html"), ("  application/geo+json ", "application/geo+json"), ("json", nil),
    ("a/b/c", nil), ("/", nil), ("", nil), ("te xt/html", nil), ("text/\u{e9}", nil),
  ]) func `media types are normalised, and invalid ones are nil`(_ text: String, _ type: String?) {
    #expect(HTTPErrorMessage.mediaType(text) == type)
  }

  @Test func `a response of more than 1 MiB is an error`() async {
    let announced = HTTPPeer("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n")
    #expect(await failure(HTTPRequest("GET", announced.url, proxy: "")).contains("more than the maximum of 1 MiB"))
    let endless = HTTPPeer { connection, _ in
      HTTPPeer.send(connection, "HTTP/1.1 200 OK\r\n\r\n")
      let chunk = String(repeating: "x", count: 65536)
      while HTTPPeer.send(connection, chunk) {}
    }
    #expect(await failure(HTTPRequest("GET", endless.url, proxy: "")).contains("more than the maximum of 1 MiB"))
    let head = HTTPPeer { connection, _ in
      HTTPPeer.send(connection, "HTTP/1.1 200 OK\r\n")
      while HTTPPeer.send(connection, "X-A: \(String(repeating: "x", count: 1000))\r\n") {}
    }
    #expect(await failure(HTTPRequest("GET", head.url, proxy: "")).contains("more than 64 KiB of headers"))
    let exact = String(repeating: "x", count: 1 << 20)
    let full = HTTPPeer(HTTPPeer.answer(exact, type: "text/plain"))
    #expect(await ask(HTTPRequest("GET", full.url, proxy: "")) == .answered(status: 200, type: "text/plain", body: Array(exact.utf8)))
  }

  @Test func `the maximum length is 16 MiB`() async {
    let exact = String(repeating: "x", count: 16 << 20)
    let full = HTTPPeer(HTTPPeer.answer(exact, type: "text/plain"))
    for maxLength in [16 << 20, .max] {
      let answer = await ask(HTTPRequest("GET", full.url, proxy: "", maxLength: maxLength))
      #expect(answer == .answered(status: 200, type: "text/plain", body: Array(exact.utf8)), "\(maxLength)")
    }
    let announced = HTTPPeer("HTTP/1.1 200 OK\r\nContent-Length: \(exact.utf8.count + 1)\r\n\r\n")
    #expect(await failure(HTTPRequest("GET", announced.url, proxy: "", maxLength: .max)).contains("more than the maximum of 16 MiB"))
    let endless = HTTPPeer { connection, _ in
      HTTPPeer.send(connection, "HTTP/1.1 200 OK\r\n\r\n")
      let chunk = String(repeating: "x", count: 65536)
      while HTTPPeer.send(connection, chunk) {}
    }
    #expect(await failure(HTTPRequest("GET", endless.url, proxy: "", maxLength: 16 << 20)).contains("more than the maximum of 16 MiB"))
  }

  /// libcurl reports both timeouts with the same code.
  @Test func `a timeout of the connection is not reported as that of the request`() {
    func message(isConnected: Bool, timeout: Nanoseconds, proxy: String? = nil) -> String {
      let failure = HTTPErrorMessage.Failure(
        code: CURLE_OPERATION_TIMEDOUT, excess: nil, isConnected: isConnected, connectErrno: 0, proxyStatus: 0, tlsMessage: "")
      return HTTPErrorMessage.message(for: failure, of: HTTPRequest("GET", "https://a.example/b", timeout: timeout, proxy: proxy))
    }
    #expect(message(isConnected: true, timeout: 30 * .second) == "no response from a.example within 30 s; check the network")
    #expect(message(isConnected: false, timeout: 30 * .second) == "no connection to a.example within 10 s; check host, port and network")
    #expect(message(isConnected: false, timeout: 5 * .second).contains("within 5 s"))
    let proxied = message(isConnected: false, timeout: 30 * .second, proxy: "http://p:3128")
    #expect(proxied == "no connection to a.example through the proxy within 10 s; check host, port and network")
  }

  @Test func `errors have messages without secrets`() async {
    let silent = HTTPPeer { connection, _ in HTTPPeer.waitForTheEnd(connection) }
    let late = await failure(HTTPRequest("GET", silent.url + "/?key=geheim", timeout: 300 * .millisecond, proxy: ""))
    #expect(late == "no response from 127.0.0.1:\(silent.port) within 0.3 s; check the network")
    let silentTLS = await failure(
      HTTPRequest("GET", "https://127.0.0.1:\(silent.port)/?key=geheim", timeout: 300 * .millisecond, proxy: ""))
    #expect(silentTLS == "no connection to 127.0.0.1:\(silent.port) within 0.3 s; check host, port and network")
    let refused = await failure(HTTPRequest("GET", "http://me:geheim@127.0.0.1:1/?key=geheim", proxy: ""))
    #expect(refused.hasPrefix("cannot reach 127.0.0.1:1: connection refused") && !refused.contains("geheim"), "\(refused)")
    let proxied = await failure(HTTPRequest("GET", "http://nobody.invalid/?key=geheim", proxy: "http://me:geheim@127.0.0.1:1"))
    #expect(proxied.hasPrefix("cannot reach the proxy 127.0.0.1:1: connection refused") && !proxied.contains("geheim"), "\(proxied)")
    let unknown = await failure(HTTPRequest("GET", "http://nobody.invalid/?key=geheim", proxy: ""))
    #expect(unknown.hasPrefix("cannot resolve nobody.invalid") && !unknown.contains("geheim"), "\(unknown)")
    for garbage in ["SSH-2.0-OpenSSH_9.2\r\n", "\u{0}\u{1}\u{2}\r\n\r\n", "HTTP/9.9 what\r\n\r\n"] {
      let peer = HTTPPeer(garbage)
      let message = await failure(HTTPRequest("GET", peer.url, timeout: 2 * .second, proxy: ""))
      #expect(message.contains("is not HTTP") || message.contains("closed the connection"), "\(message)")
    }
    let cut = HTTPPeer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":")
    #expect(await failure(HTTPRequest("GET", cut.url, proxy: "")).contains("before the response was complete"))
    let mute = HTTPPeer("")
    #expect(await failure(HTTPRequest("GET", mute.url, proxy: "")).contains("closed the connection without a response"))
  }

  @Test func `invalid requests are rejected`() async {
    let peer = HTTPPeer(HTTPPeer.answer("{}"))
    for value in ["a\r\nX-Evil: 1", "a\nb", "a\u{0}b", "a\u{7f}"] {
      #expect(await failure(HTTPRequest("GET", peer.url, headers: ["X-Name": value])).contains("a control character"))
    }
    #expect(await failure(HTTPRequest("GET", peer.url, headers: ["X-A\r\nX-B": "1"])).contains("invalid header name"))
    for url in ["file:///etc/passwd", "ftp://127.0.0.1/", "http://", "http://:80/", "http://a b/", "gopher://x/", "http://h/\r\nX: 1", ""] {
      #expect(await failure(HTTPRequest("GET", url)).contains("URL"), "\(url)")
    }
    #expect(await failure(HTTPRequest("GET / HTTP/1.1\r\nX:", peer.url)).contains("method"))
    #expect(await failure(HTTPRequest("GET", peer.url, proxy: "http://a\r\nb")).contains("proxy"))
    #expect(peer.requests.isEmpty)
  }

  @Test func `a proxy gets the request`() async {
    let proxy = HTTPPeer(HTTPPeer.answer("{}"))
    #expect(
      await ask(HTTPRequest("GET", "http://nobody.invalid/x", proxy: proxy.url))
        == .answered(status: 200, type: "application/json", body: Array("{}".utf8)))
    #expect(proxy.requests.first?.hasPrefix("GET http://nobody.invalid/x HTTP/1.1\r\n") == true)
    let refusing = HTTPPeer("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    let message = await failure(HTTPRequest("GET", "https://nobody.invalid/x?key=geheim", proxy: refusing.url))
    #expect(message.contains("status 407") && !message.contains("geheim"), "\(message)")
    #expect(refusing.requests.first?.hasPrefix("CONNECT nobody.invalid:443 ") == true)
  }

  @Test func `concurrent requests are limited`() async {
    let counts = Mutex((now: 0, most: 0))
    let gate = Mutex(false)
    let peer = HTTPPeer { connection, _ in
      counts.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
      while !gate.withLock({ $0 }) { usleep(2000) }
      counts.withLock { $0.now -= 1 }
      HTTPPeer.send(connection, HTTPPeer.answer("{}"))
    }
    let client = HTTPClient()
    var (good, refused) = (0, 0)
    for _ in 0..<90 {
      _ = client.send(HTTPRequest("GET", peer.url, timeout: 60 * .second, proxy: "")) { response in
        if case .answered(200, _, _) = response { good += 1 } else { refused += 1 }
      }
    }
    #expect(await until { counts.withLock { $0.now } == 16 && refused == 10 })
    gate.withLock { $0 = true }
    #expect(await until { good == 80 })
    #expect(counts.withLock { $0.most } == 16)
    client.close()
  }

  @Test func `closing a device cancels its requests`() async {
    let closedCount = Mutex(0)
    let peer = HTTPPeer { connection, request in
      if request.hasPrefix("GET /answer") { HTTPPeer.send(connection, HTTPPeer.answer("{}")) }
      HTTPPeer.waitForTheEnd(connection)
      closedCount.withLock { $0 += 1 }
    }
    let probe = Probe()
    let url = peer.url
    probe.onInput { input, _, effects in
      guard case .started = input else { return }
      effects.append(.request(1, HTTPRequest("GET", "\(url)/answer", proxy: "")))
      effects.append(.request(2, HTTPRequest("GET", "\(url)/never", timeout: 60 * .second, proxy: "")))
    }
    let client = HTTPClient()
    let device = device(probe, http: client)
    device.open(restored: [:])
    #expect(await until { probe.inputTexts.contains { $0.hasPrefix("response 1: answered") } && peer.requests.count == 2 })
    var isClosed = false
    device.close { isClosed = true }
    #expect(isClosed)
    // The connection is closed before the timeout, and the machine gets no response.
    #expect(await until { closedCount.withLock { $0 } == 2 })
    var responds = false
    client.ping { responds = true }
    #expect(await until { responds })
    #expect(!probe.inputTexts.contains { $0.hasPrefix("response 2") })
    client.close()
  }

  @Test func `the watchdog gets an answer with and without a thread`() async {
    let client = HTTPClient()
    var answers = 0
    client.ping { answers += 1 }
    #expect(answers == 1, "no request was made, so there is no thread")
    let silent = HTTPPeer { connection, _ in HTTPPeer.waitForTheEnd(connection) }
    _ = client.send(HTTPRequest("GET", silent.url, timeout: 60 * .second, proxy: "")) { _ in answers = -100 }
    client.ping { answers += 1 }
    #expect(await until { answers == 2 })
    client.close()
    client.ping { answers += 1 }
    #expect(answers == 3)
  }

  @Test func `only a verifiable certificate is trusted`() async throws {
    let server = try await TLSServer()
    let request = HTTPRequest("GET", "https://localhost:\(server.port)/?key=geheim", timeout: 20 * .second, proxy: "")
    let message = await failure(request)
    #expect(message.hasPrefix("the certificate of localhost:\(server.port) is not trusted"), "\(message)")
    #expect(message.contains("self-signed") && message.contains("ca-certificates") && !message.contains("geheim"), "\(message)")
    // With its certificate as CA the same server is trusted, but only under the name in the certificate.
    let trusting = HTTPClient(caFile: server.certificate)
    #expect(await ask(request, trusting) == .answered(status: 200, type: "application/json", body: Array("{}".utf8)))
    let other = HTTPRequest("GET", "https://127.0.0.1:\(server.port)/", timeout: 20 * .second, proxy: "")
    #expect(await failure(other, HTTPClient(caFile: server.certificate)).contains("is not trusted"))
    let plain = HTTPPeer("this is no TLS\r\n\r\n")
    let noTLS = await failure(HTTPRequest("GET", "https://127.0.0.1:\(plain.port)/", timeout: 2 * .second, proxy: ""))
    #expect(noTLS.contains("TLS handshake") || noTLS.contains("closed the connection") || noTLS.contains("no connection"), "\(noTLS)")
  }
}

/// An HTTPS server with a self-signed certificate for `localhost`.
@Loop private final class TLSServer {
  let port: Int
  let certificate: String
  private let process = Process()
  private let output = Pipe()

  init() async throws {
    let folder = temporaryDirectory()
    certificate = "\(folder)/certificate.pem"
    let openssl = Process()
    openssl.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    openssl.arguments = [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
      "-addext", "subjectAltName=DNS:localhost", "-keyout", "\(folder)/key.pem", "-out", certificate,
    ]
    openssl.standardError = FileHandle.nullDevice
    try openssl.run()
    try #require(await until { !openssl.isRunning } && openssl.terminationStatus == 0, "openssl created no certificate")
    let python = ProcessInfo.processInfo.environment["VEHICLED_PYTHON"] ?? "/usr/bin/python3"
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = ["-c", Self.program, certificate, "\(folder)/key.pem"]
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // Other tests share the loop, so this must not block it.
    let descriptor = output.fileHandleForReading.fileDescriptor
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    var bytes = [UInt8](repeating: 0, count: 64)
    var count = 0
    _ = await until {
      count = read(descriptor, &bytes, bytes.count)
      return count >= 0
    }
    let line = String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self).split(separator: "\n").first
    port = try #require(line.flatMap { Int($0) }, "the TLS server prints no port")
  }

  deinit {
    kill(process.processIdentifier, SIGKILL)
    try? output.fileHandleForReading.close()
    try? output.fileHandleForWriting.close()
  }

  private static let program = """
    import http.server, ssl, sys
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)
    server.serve_forever()
    """
}
