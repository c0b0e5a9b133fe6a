// Where the server listens: a loopback address or a Unix socket. Other computers connect through a reverse proxy, which adds TLS.

import Glibc
import Protocols
import ServiceRuntime

enum ListenAddress: Equatable, Sendable, CustomStringConvertible {
  /// `127.0.0.1` or `::1`, and a port; 0 for a free one.
  case tcp(host: String, port: Int)
  case unix(path: String)

  init(_ text: String) throws(ValueError) {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard path.hasPrefix("/"), path.utf8.count <= 107 else {
        throw ValueError("\(quoted(text)) is not an address; write unix:/PATH, with at most 107 bytes")
      }
      self = .unix(path: path)
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
      throw ValueError("\(quoted(text)) is not an address; write 127.0.0.1:PORT, [::1]:PORT or unix:/PATH")
    }
    switch text[..<colon] {
    case "127.0.0.1", "localhost": self = .tcp(host: "127.0.0.1", port: Int(port))
    case "[::1]": self = .tcp(host: "::1", port: Int(port))
    default:
      throw ValueError(
        "\(quoted(text)) can be reached from other computers, without encryption; use 127.0.0.1:PORT or unix:/PATH, and a reverse proxy")
    }
  }

  var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
