// Configuration keys that say where an HTTP server is and which way leads there. Pure text; nobody is asked.

extension Setup {
  /// The server that a key names, without a slash at its end: `https://HOST` or `http://HOST:PORT/PATH`.
  func httpServer(_ key: String) throws(OptionError) -> String {
    guard case .string(var text)? = options[key] else { throw OptionError(key, "is missing; write https://HOST") }
    while text.hasSuffix("/") { text.removeLast() }
    let host = ["https://", "http://"].first { text.hasPrefix($0) }.map { text.dropFirst($0.count) } ?? ""
    guard Self.isVisible(text), !host.isEmpty, !host.hasPrefix("/"), !host.utf8.contains(where: { "?#\\".utf8.contains($0) }) else {
      throw OptionError(key, "this is no server; write https://HOST or http://HOST:PORT, without a question mark")
    }
    guard !host.prefix(while: { $0 != "/" }).contains("@") else {
      throw OptionError(key, "user and password do not belong into a server's URL; leave out what stands before the @")
    }
    return text
  }

  /// The proxy, if one is named; empty: none, whatever the environment says.
  func httpProxy() throws(OptionError) -> String? {
    guard case .string(let text)? = options["proxy"] else { return nil }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let isURL = parts.count > 2 && Self.proxies.contains(parts[0].lowercased()) && parts[1].isEmpty && !parts[2].isEmpty
    guard text.isEmpty || isURL && Self.isVisible(text) else {
      throw OptionError("proxy", "this is no proxy's URL; write one, as in http://192.168.0.1:3128 or socks5h://127.0.0.1:9050")
    }
    return text
  }

  /// As libcurl knows them.
  private static let proxies: Set = ["http:", "https:", "socks4:", "socks4a:", "socks5:", "socks5h:"]

  private static func isVisible(_ text: String) -> Bool { text.utf8.count <= 1000 && text.utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
