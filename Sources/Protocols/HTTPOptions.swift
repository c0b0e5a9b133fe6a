// Configuration keys for an HTTP server and the proxy in front of it. The values are only parsed; no host name is resolved.

extension Setup {
  /// The server URL in a key, without trailing slashes: `https://HOST` or `http://HOST:PORT/PATH`.
  func httpServer(_ key: String) throws(OptionError) -> String {
    guard case .string(var text)? = options[key] else { throw OptionError(key, "is missing; write https://HOST") }
    while text.hasSuffix("/") { text.removeLast() }
    let host = ["https://", "http://"].first { text.hasPrefix($0) }.map { text.dropFirst($0.count) } ?? ""
    guard Self.isPrintable(text), !host.isEmpty, !host.hasPrefix("/"), !host.utf8.contains(where: { "?#\\".utf8.contains($0) }) else {
      throw OptionError(key, "not a server URL; write https://HOST or http://HOST:PORT, without a query")
    }
    guard !host.prefix(while: { $0 != "/" }).contains("@") else {
      throw OptionError(key, "a server URL must not contain a user or password; remove everything before the @")
    }
    return text
  }

  /// The proxy URL, or nil if none is configured. An empty string disables proxies from the environment.
  func httpProxy() throws(OptionError) -> String? {
    guard case .string(let text)? = options["proxy"] else { return nil }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let isURL = parts.count > 2 && Self.proxySchemes.contains(parts[0].lowercased()) && parts[1].isEmpty && !parts[2].isEmpty
    guard text.isEmpty || isURL && Self.isPrintable(text) else {
      throw OptionError("proxy", "not a proxy URL; write one, for example http://192.168.0.1:3128 or socks5h://127.0.0.1:9050")
    }
    return text
  }

  /// The schemes of proxies that libcurl supports.
  private static let proxySchemes: Set = ["http:", "https:", "socks4:", "socks4a:", "socks5:", "socks5h:"]

  private static func isPrintable(_ text: String) -> Bool { text.utf8.count <= 1000 && text.utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
