// The places a peer can stand at, as a person writes them and as the configuration of vehicled takes them. Pure text.

import Protocols

enum Endpoint: Equatable, Sendable {
  case pty
  case tcp(host: String, port: UInt16)
  /// A bus, by its address, where we stand in for BlueZ.
  case ble(bus: String)

  /// Reads `pty`, `tcp:HOST:PORT`, `tcp:[ADDRESS]:PORT` or `ble:BUSADDRESS`.
  init(_ text: String) throws(ValueError) {
    if text == "pty" {
      self = .pty
      return
    }
    if text.hasPrefix("ble:"), text.contains("=") {
      self = .ble(bus: String(text.dropFirst(4)))
      return
    }
    guard text.hasPrefix("tcp:"), let colon = text.lastIndex(of: ":") else {
      throw ValueError("\"\(text)\" is no place: write pty, tcp:HOST:PORT, or ble:BUSADDRESS, as in ble:unix:path=/tmp/bus")
    }
    var host = text[..<colon].dropFirst(4)
    guard let port = UInt16(text[text.index(after: colon)...]) else {
      throw ValueError("\"\(text)\" has no port: write tcp:HOST:PORT with a port from 0 (any free one) to 65535")
    }
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      throw ValueError("\"\(host)\" has colons: write an IPv6 address in brackets, tcp:[::1]:\(port)")
    }
    guard !host.isEmpty else { throw ValueError("\"\(text)\" has no host: write tcp:127.0.0.1:\(port)") }
    self = .tcp(host: String(host), port: port)
  }

  /// The link of a TCP peer.
  static func url(host: String, port: UInt16) -> String {
    host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
  }

  /// The link of a serial port. What a URL keeps for itself is percent-encoded.
  static func url(path: String) -> String {
    let hexadecimal = Array("0123456789ABCDEF".utf8)
    let encoded = path.utf8.flatMap { byte -> [UInt8] in
      switch byte {
      case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: [byte]
      default: [0x25, hexadecimal[Int(byte >> 4)], hexadecimal[Int(byte & 0x0F)]]
      }
    }
    return "serial:" + String(decoding: encoded, as: UTF8.self)
  }
}
