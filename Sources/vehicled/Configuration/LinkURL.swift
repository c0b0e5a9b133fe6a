// Link URLs: `serial:/dev/ttyUSB0?baud=115200`, `tcp:[::1]:35000`, `ble:Veepeak`, `slcan:tcp:192.168.80.1:3333`,
// `replay:/var/tmp/ride.ndjson`. Parsing and formatting only, without opening or resolving anything. To add a scheme, add a row to
// `schemes`, and a case to the enumeration and to each switch.

import Glibc
import Protocols

/// The destination of a link.
enum LinkURL: Hashable, Sendable {
  /// If `baud` is nil, the kind may detect the speed, starting with the default.
  case serial(path: String, baud: Int?)
  case tcp(host: String, port: Int)
  case ble(BLETarget)
  /// A CAN adapter that speaks slcan, on a serial port or a TCP connection, or a recording of one.
  indirect case slcan(over: LinkURL)
  /// A CAN interface of the kernel.
  case can(interface: String)
  /// A local port to which peers from this network connect. Only kinds open such links; they cannot be configured as a URL.
  case listening(host: String, port: Int, network: IPv4Network?)
  /// Replays a recording at `speed` times its original speed.
  case replay(path: String, speed: Double)
}

/// An invalid link URL: the cause, the remedy, and the byte offset in the text.
struct LinkURLError: Error, Equatable, CustomStringConvertible {
  var offset: Int
  var description: String

  init(at offset: Int, _ description: String) {
    self.offset = offset
    self.description = description
  }
}

/// A scheme, the form of its URLs, and its query keys.
struct LinkScheme: Sendable {
  var name: String
  var form: String
  var keys: [String] = []
}

extension LinkURL {
  static let schemes = [
    LinkScheme(name: "serial", form: "serial:/PATH[?baud=N]", keys: ["baud"]),
    LinkScheme(name: "tcp", form: "tcp:HOST:PORT"),
    LinkScheme(name: "ble", form: "ble:NAME", keys: ["adapter", "service", "notify", "write", "response"]),
    LinkScheme(name: "slcan", form: "slcan:serial:/PATH[?baud=N] or slcan:tcp:HOST:PORT", keys: ["baud", "speed"]),
    LinkScheme(name: "can", form: "can:INTERFACE"),
    LinkScheme(name: "replay", form: "replay:/PATH[?speed=N]", keys: ["speed"]),
  ]
  static let defaultBaud = 38400
  private static let slcanBaud = 115_200

  /// Parses a URL.
  init(_ text: String) throws(LinkURLError) {
    let parts = try LinkParts(text)
    switch parts.scheme.name {
    case "serial":
      self = .serial(path: try parts.path(), baud: try parts.number("baud", in: 50...4_000_000))
    case "tcp":
      let (host, port) = try parts.address()
      self = .tcp(host: host, port: port)
    case "ble": self = .ble(try parts.target())
    case "can": self = .can(interface: try parts.interface())
    case "slcan": self = .slcan(over: try Self.carrier(of: parts))
    default:
      self = .replay(path: try parts.path(), speed: try parts.number("speed", in: 0.001...1_000_000) ?? 1)
    }
  }

  /// The link that carries slcan. The baud rate is never detected: USB adapters ignore it, and the others have a fixed one.
  private static func carrier(of parts: LinkParts) throws(LinkURLError) -> LinkURL {
    let offset = parts.scheme.name.utf8.count + 1
    let carrier: LinkURL
    do throws(LinkURLError) { carrier = try LinkURL(parts.textAfterScheme) } catch {
      throw LinkURLError(at: error.offset + offset, error.description)
    }
    switch carrier {
    case .serial(let path, let baud): return .serial(path: path, baud: baud ?? slcanBaud)
    case .tcp, .replay: return carrier
    case .ble, .slcan, .can, .listening: throw LinkURLError(at: offset, "write \(parts.scheme.form)")
    }
  }

  /// An identifier of the port, address, peer or interface itself, which is the same for all ways to write it; nil if the URL does not
  /// determine it.
  var canonicalID: String? {
    switch self {
    case .serial(let path, _): "serial:\(path)"
    case .ble(let target): target.match == .auto ? nil : "ble:\(target.match) at \(target.adapter)"
    case .tcp(let host, let port): "tcp:\(canonical(host: host)):\(port)"
    case .slcan(let carrier): carrier.canonicalID
    case .can(let interface): "can:\(interface)"
    case .listening, .replay: nil
    }
  }

  /// Whether only one device can use the link. A slcan adapter has one channel, which each device would open and close.
  var isExclusive: Bool {
    switch self {
    case .serial, .ble, .slcan: true
    case .tcp, .can, .listening, .replay: false
    }
  }

  /// The serial port or the connection itself, without the protocol on it.
  var transport: LinkURL { if case .slcan(let carrier) = self { carrier } else { self } }

  /// The scheme: the part before the first colon.
  var scheme: String {
    switch self {
    case .serial: "serial"
    case .tcp: "tcp"
    case .ble: "ble"
    case .slcan: "slcan"
    case .can: "can"
    case .listening: "listening"
    case .replay: "replay"
    }
  }
}

extension LinkURL: CustomStringConvertible {
  /// The shortest URL of this link.
  var description: String { text(percentEncoded) }
  /// The URL for people: spaces instead of `%20`. It cannot be parsed again.
  var readable: String { text { $0 } }

  private func text(_ encoded: (String) -> String) -> String {
    switch self {
    case .serial(let path, let baud): "serial:\(encoded(path))" + (baud.map { "?baud=\($0)" } ?? "")
    case .tcp(let host, let port): "tcp:" + (host.contains(":") ? "[\(encoded(host))]" : host) + ":\(port)"
    case .listening(let host, let port, _): "listening:\(host):\(port)"
    case .slcan(let carrier): "slcan:\(carrier.text(encoded))"
    case .can(let interface): "can:\(interface)"
    case .ble(let target): "ble:\(encoded(target.match.description))\(query(target))"
    case .replay(let path, let speed): "replay:\(encoded(path))" + (speed == 1 ? "" : "?speed=\(Value.text(speed))")
    }
  }
}

/// The host in lower case, or its address in the shortest form; `localhost` for this machine.
private func canonical(host: String) -> String {
  let name = host.lowercased()
  let plain = name.hasSuffix(".") ? String(name.dropLast()) : name
  let mapped = "::ffff:"
  var (bytes, text) = (in6_addr(), [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN)))
  guard inet_pton(AF_INET6, plain, &bytes) == 1, inet_ntop(AF_INET6, &bytes, &text, socklen_t(text.count)) != nil else {
    return plain == "127.0.0.1" ? "localhost" : plain
  }
  let address = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  if address == "::1" { return "localhost" }
  return address.hasPrefix(mapped) && address.contains(".") ? canonical(host: String(address.dropFirst(mapped.utf8.count))) : address
}

/// The query of a BLE link, without default values.
private func query(_ target: BLETarget) -> String {
  let pairs = [
    ("adapter", target.adapter == BLETarget.defaultAdapter ? nil : target.adapter), ("service", target.service?.description),
    ("notify", target.notify?.description), ("write", target.write?.description),
    ("response", target.response.map { $0 ? "yes" : "no" }),
  ]
  let given = pairs.compactMap { key, value in value.map { "\(key)=\($0)" } }
  return given.isEmpty ? "" : "?" + given.joined(separator: "&")
}

/// Encodes only the bytes that would otherwise be parsed differently, so the URL stays readable.
private func percentEncoded(_ text: String) -> String {
  let digits = Array("0123456789ABCDEF".utf8)
  var bytes: [UInt8] = []
  for byte in text.utf8 {
    if byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "%") || byte == UInt8(ascii: "?") {
      bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    } else {
      bytes.append(byte)
    }
  }
  return String(decoding: bytes, as: UTF8.self)
}
