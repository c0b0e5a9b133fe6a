// Host and Origin: what other sites can send is rejected.

import NIOHTTP1
import Protocols
import Testing

@testable import vehicled_web

@Suite("Checks of requests") struct RequestCheckTests {
  private static let local = RequestCheck(port: 8270, origins: [])
  private static let proxied = RequestCheck(
    port: nil, origins: ["https://car.example", "http://car.home:8080"].compactMap { try? Origin($0) })

  @Test(arguments: [
    ("127.0.0.1:8270", true), ("localhost:8270", true), ("LOCALHOST:8270", true), ("[::1]:8270", true), ("127.0.0.1", false),
    ("127.0.0.1:8271", false), ("evil.example:8270", false), ("localhost.evil.example:8270", false), ("127.0.0.1.evil.example:8270", false),
    ("evil.example", false), ("", false), ("127.0.0.1:8270, evil.example", false),
  ])
  func `a host is a loopback name with the port`(_ host: String, _ isAccepted: Bool) {
    #expect((Self.local.hostProblem(["Host": host]) == nil) == isAccepted)
  }

  @Test func `a request has one Host`() {
    #expect(Self.local.hostProblem([:])?.status == .badRequest)
    #expect(Self.local.hostProblem(HTTPHeaders([("Host", "127.0.0.1:8270"), ("Host", "127.0.0.1:8270")]))?.status == .badRequest)
    #expect(Self.local.hostProblem(["Host": "evil.example:8270"])?.status == .misdirectedRequest)
  }

  @Test(arguments: [
    ("http://127.0.0.1:8270", true), ("http://localhost:8270", false), ("https://127.0.0.1:8270", false), ("http://127.0.0.1:9999", false),
    ("http://127.0.0.1", false), ("http://evil.example", false), ("null", false), ("", false), ("file://", false),
  ])
  func `an origin is that of the page`(_ origin: String, _ isAccepted: Bool) {
    #expect((Self.local.originProblem(["Host": "127.0.0.1:8270", "Origin": origin]) == nil) == isAccepted)
  }

  @Test func `a request without Origin, or with several, is rejected`() {
    #expect(Self.local.originProblem(["Host": "127.0.0.1:8270"])?.status == .forbidden)
    let twice: HTTPHeaders = [
      "Host": "127.0.0.1:8270", "Origin": "http://127.0.0.1:8270", "origin": "http://evil.example",
    ]
    #expect(Self.local.originProblem(twice)?.status == .forbidden)
  }

  @Test(arguments: [
    ("car.example", "https://car.example", true), ("car.home:8080", "http://car.home:8080", true),
    // A proxy that does not pass Host on.
    ("localhost", "https://car.example", true), ("localhost", "http://localhost", true),
    // A page without TLS, which others on the network can change.
    ("car.example", "http://car.example", false), ("evil.example", "https://car.example", false),
    ("car.example", "https://evil.example", false), ("car.home", "http://car.home", false),
  ])
  func `a reverse proxy has its own origin`(_ host: String, _ origin: String, _ isAccepted: Bool) {
    let headers: HTTPHeaders = ["Host": host, "Origin": origin]
    #expect((Self.proxied.hostProblem(headers) == nil && Self.proxied.originProblem(headers) == nil) == isAccepted)
  }

  @Test func `only a cookie of a page with TLS needs TLS`() {
    #expect(Self.proxied.isSecure(["Origin": "https://car.example"]) && !Self.proxied.isSecure(["Origin": "http://localhost"]))
  }

  @Test func `port 80 is not part of a host`() {
    #expect(RequestCheck(port: 80, origins: []).hostProblem(["Host": "localhost"]) == nil)
  }

  @Test func `all replies forbid foreign content, frames and guesses of the type`() {
    let headers = Reply.text(.notFound, "x").head(.http1_1, keepAlive: true).headers
    let policy = headers.first(name: "Content-Security-Policy") ?? ""
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"] {
      #expect(policy.split(separator: ";").contains { $0.drop { $0 == " " } == part }, "\(part)")
    }
    #expect(!policy.contains("unsafe") && !policy.contains("http"))
    #expect(headers["X-Content-Type-Options"] == ["nosniff"] && headers["Referrer-Policy"] == ["no-referrer"])
    #expect(!headers.contains { $0.name.lowercased().hasPrefix("access-control") })
  }
}
