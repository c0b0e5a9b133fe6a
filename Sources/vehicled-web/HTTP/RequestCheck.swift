// Which Host and Origin a request may have. Any web page can send requests to this computer: its name in DNS may resolve to a loopback
// address (rebinding), and a WebSocket connects across origins. A token alone would not help against a page that uses the cookie.

import NIOHTTP1
import Protocols
import ServiceRuntime

struct RequestCheck: Sendable {
  /// The names of this computer that no other site can have.
  private static let loopback = ["127.0.0.1", "localhost", "[::1]"]

  /// The loopback authorities, with the port.
  private let local: [String]
  /// The origins of reverse proxies.
  private let origins: [Origin]

  /// `port`: the TCP port; nil for a Unix socket.
  init(port: Int?, origins: [Origin]) {
    self.origins = origins
    local = Self.loopback.map { name in port.map { $0 == 80 ? name : "\(name):\($0)" } ?? name }
  }

  /// Returns the reply to a request whose Host is not one of this server; nil if it is.
  func hostProblem(_ headers: HTTPHeaders) -> Reply? {
    let hosts = headers["Host"]
    guard hosts.count == 1, let host = hosts.first else { return .text(.badRequest, "the request has no Host, or several") }
    guard !local.contains(host.lowercased()), !origins.contains(where: { $0.authority == host.lowercased() }) else { return nil }
    return .text(
      .misdirectedRequest,
      "this server is not \(quoted(host)); use \(local[0]), or add the URL of the reverse proxy to origins in web.toml")
  }

  /// Returns the reply to a request that was not sent by a page of this server; nil if it was. Call it after `hostProblem`.
  func originProblem(_ headers: HTTPHeaders) -> Reply? {
    let given = headers["Origin"]
    guard given.count == 1, let text = given.first else { return .text(.forbidden, "the request has no Origin, or several") }
    let host = headers.first(name: "Host")?.lowercased() ?? ""
    if local.contains(host), text.lowercased() == "http://\(host)" { return nil }
    if origins.contains(where: { $0.text == text.lowercased() }) { return nil }
    return .text(.forbidden, "pages of \(quoted(text)) must not use this server; add the URL to origins in web.toml")
  }

  /// Whether the page of a request was loaded by TLS, so that its cookie must be sent by TLS only.
  func isSecure(_ headers: HTTPHeaders) -> Bool { headers.first(name: "Origin")?.lowercased().hasPrefix("https://") == true }
}

/// The scheme, host and port of a URL, in lower case, without the default port, as browsers send it.
struct Origin: Equatable, Sendable {
  let text: String
  /// The host, with the port if it is not the scheme's default: what browsers send as Host.
  let authority: String

  init(_ text: String) throws(ValueError) {
    let lower = text.lowercased()
    guard let scheme = ["https://", "http://"].first(where: lower.hasPrefix) else {
      throw ValueError("\(quoted(text)) is not an origin; write https://HOST, with :PORT if it is not 443")
    }
    let rest = lower.dropFirst(scheme.count)
    let isValid = !rest.isEmpty && rest.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@\\".utf8.contains($0) }
    guard isValid else { throw ValueError("\(quoted(text)) is not an origin; write only scheme, host and port, such as https://car.home") }
    let defaultPort = scheme == "https://" ? ":443" : ":80"
    authority = String(rest.hasSuffix(defaultPort) ? rest.dropLast(defaultPort.count) : rest)
    self.text = scheme + authority
  }
}
