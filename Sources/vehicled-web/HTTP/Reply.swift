// HTTP replies, with the headers that protect the page in the browser.

import NIOCore
import NIOHTTP1

struct Reply {
  var status: HTTPResponseStatus
  var headers: HTTPHeaders
  var body: ByteBuffer

  init(_ status: HTTPResponseStatus, _ headers: HTTPHeaders = [:], body: ByteBuffer = ByteBuffer()) {
    (self.status, self.headers, self.body) = (status, headers, body)
  }

  /// A message for users, or for the console of the browser.
  static func text(_ status: HTTPResponseStatus, _ text: String, _ headers: HTTPHeaders = [:]) -> Reply {
    Reply(
      status, HTTPHeaders([("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")] + headers.map { ($0, $1) }),
      body: ByteBuffer(string: text + "\n"))
  }

  /// The headers of all replies: a page loads nothing but its own files, connects to nothing but this server, is shown in no frame, and
  /// is not sent as the referrer. Sources: Content Security Policy Level 3, Fetch.
  private static let protection: [(String, String)] = [
    (
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'"
    ),
    ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  /// The head, as it is sent.
  func head(_ version: HTTPVersion, keepAlive: Bool) -> HTTPResponseHead {
    var headers = headers
    for (name, value) in Self.protection { headers.add(name: name, value: value) }
    if status != .noContent && status != .notModified { headers.add(name: "Content-Length", value: "\(body.readableBytes)") }
    headers.add(name: "Connection", value: keepAlive ? "keep-alive" : "close")
    return HTTPResponseHead(version: version, status: status, headers: headers)
  }
}
