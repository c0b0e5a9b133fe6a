// Endpoints of a simulated device, as given on the command line, and their link URLs for vehicled's configuration.

import Protocols

enum Endpoint: Equatable, Sendable {
  case pty
  case tcp(host: String, port: UInt16)
  /// The address of a message bus for the mock BlueZ.
  case ble(bus: String)
  /// A CAN adapter that speaks slcan at this endpoint.
  indirect case slcan(Endpoint)
  /// A CAN interface of the kernel.
  case can(interface: String)

  /// Parses `pty`, `tcp:HOST:PORT`, `tcp:[ADDRESS]:PORT`, `ble:BUSADDRESS`, `slcan:pty`, `slcan:tcp:…` or `can:INTERFACE`.
  init(_ text: String) throws(ValueError) {
    if text.hasPrefix("can:") {
      let interface = String(text.dropFirst(4))
      guard (1...15).contains(interface.utf8.count) else {
        throw ValueError("invalid interface in \"\(text)\": write can:INTERFACE, for example can:vcan0")
      }
      self = .can(interface: interface)
      return
    }
    if text.hasPrefix("slcan:") {
      self = .slcan(try Endpoint(String(text.dropFirst(6))))
      switch self {
      case .slcan(.pty), .slcan(.tcp): return
      default: throw ValueError("invalid endpoint \"\(text)\": write slcan:pty or slcan:tcp:HOST:PORT")
      }
    }
    if text == "pty" {
      self = .pty
      return
    }
    if text.hasPrefix("ble:"), text.contains("=") {
      self = .ble(bus: String(text.dropFirst(4)))
      return
    }
    guard text.hasPrefix("tcp:"), let colon = text.lastIndex(of: ":") else {
      throw ValueError("invalid endpoint \"\(text)\": write pty, tcp:HOST:PORT, or ble:BUSADDRESS, for example ble:unix:path=/tmp/bus")
    }
    var host = text[..<colon].dropFirst(4)
    guard let port = UInt16(text[text.index(after: colon)...]) else {
      throw ValueError("invalid port in \"\(text)\": write tcp:HOST:PORT with a port from 1 to 65535, or 0 for any free port")
    }
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      throw ValueError("invalid host \"\(host)\": write an IPv6 address in brackets, for example tcp:[::1]:\(port)")
    }
    guard !host.isEmpty else { throw ValueError("missing host in \"\(text)\": write tcp:127.0.0.1:\(port)") }
    self = .tcp(host: String(host), port: port)
  }

  /// The link URL of a TCP endpoint.
  static func url(host: String, port: UInt16) -> String {
    host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
  }

  /// The link URL of a serial port. Characters reserved in URLs are percent-encoded.
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
