// The URL of a camera's stream. No I/O. Only plain HTTP is supported; other URLs are rejected with the reason.

import Protocols

struct VideoURL: Equatable {
  /// The host name or address, without brackets.
  let host: String
  let port: String
  /// The path and query, starting with a slash.
  let path: String
  /// The host and port as in the URL.
  let authority: String

  init(_ text: String) throws(Failure) {
    let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let scheme = parts.count == 2 ? parts[0].lowercased() : ""
    guard scheme != "https" else {
      throw .other("cannot open \(text): HTTPS is not supported; open it in a browser, or use an http URL")
    }
    guard scheme == "http", let rest = parts.last?.prefix(while: { $0 != "#" }) else {
      throw .other("invalid stream URL \"\(text)\"; use http://HOST:PORT/PATH")
    }
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    guard !authority.contains("@") else { throw .other("cannot open \(text): user names in URLs are not supported; open it in a browser") }
    let tail = rest.dropFirst(authority.count)
    let host: Substring
    let after: Substring
    if authority.hasPrefix("[") {
      host = authority.dropFirst().prefix { $0 != "]" }
      after = authority.dropFirst(host.count + 2)
    } else {
      host = authority.prefix { $0 != ":" }
      after = authority.dropFirst(host.count)
    }
    let port = after.isEmpty || after == ":" ? "80" : String(after.dropFirst())
    guard !host.isEmpty, after.isEmpty || after.hasPrefix(":"), let number = UInt16(port), number > 0, !text.utf8.contains(0) else {
      throw .other("invalid stream URL \"\(text)\"; use http://HOST:PORT/PATH")
    }
    self.host = String(host)
    self.port = String(number)
    self.authority = String(authority)
    path = tail.hasPrefix("/") ? String(tail) : "/" + tail
  }
}
