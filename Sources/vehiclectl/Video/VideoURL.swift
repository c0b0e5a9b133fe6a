// The address of a camera's stream, taken apart. Pure. Only what a plain socket can fetch is taken; everything else is refused
// with what is wrong with it.

import Protocols

struct VideoURL: Equatable {
  /// A name or an address, without brackets.
  let host: String
  let port: String
  /// With the query, beginning with a slash.
  let path: String
  /// Host and port as they stand in the URL.
  let authority: String

  init(_ text: String) throws(Failure) {
    let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let scheme = parts.count == 2 ? parts[0].lowercased() : ""
    guard scheme != "https" else {
      throw .other("\(text) is encrypted, which vehiclectl cannot read; open it in a browser, or give an http address")
    }
    guard scheme == "http", let rest = parts.last?.prefix(while: { $0 != "#" }) else {
      throw .other("\"\(text)\" is no address of a stream; it looks like http://HOST:PORT/PATH")
    }
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    guard !authority.contains("@") else { throw .other("\(text) holds a user name, which vehiclectl does not send; open it in a browser") }
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
      throw .other("\"\(text)\" is no address of a stream; it looks like http://HOST:PORT/PATH")
    }
    self.host = String(host)
    self.port = String(number)
    self.authority = String(authority)
    path = tail.hasPrefix("/") ? String(tail) : "/" + tail
  }
}
