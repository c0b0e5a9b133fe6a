// The URL of the broker in the configuration: mqtt://HOST[:PORT] or mqtts://HOST[:PORT]. No I/O.

import Protocols
import ServiceRuntime

struct BrokerURL: Equatable {
  var scheme: BrokerOptions.Scheme
  var host: String
  var port: Int

  init(_ text: String) throws(ValueError) {
    let remedy = "use mqtt://HOST, or mqtts://HOST for TLS"
    guard let separator = text.firstRange(of: "://"), let scheme = BrokerOptions.Scheme(rawValue: String(text[..<separator.lowerBound]))
    else {
      throw ValueError("\(quoted(text)) is not the URL of a broker; \(remedy)")
    }
    self.scheme = scheme
    var rest = text[separator.upperBound...]
    if rest.hasSuffix("/") { rest.removeLast() }
    guard !rest.contains("@") else {
      throw ValueError("the URL must not contain a user or password; use the keys user and password-file")
    }
    var portText: Substring?
    if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
      host = String(rest[rest.index(after: rest.startIndex)..<end])
      let tail = rest[rest.index(after: end)...]
      if tail.hasPrefix(":") {
        portText = tail.dropFirst()
      } else if !tail.isEmpty {
        throw ValueError("\(quoted(text)) is not the URL of a broker; \(remedy)")
      }
    } else {
      let parts = rest.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      host = String(parts[0])
      portText = parts.count == 2 ? parts[1] : nil
    }
    guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }) else {
      throw ValueError("\(quoted(text)) has no valid host; \(remedy)")
    }
    guard let portText else {
      port = scheme.port
      return
    }
    guard let port = Int(portText), (1...65_535).contains(port) else {
      throw ValueError("\(quoted(String(portText))) is not a port; use a number from 1 to 65535")
    }
    self.port = port
  }
}
