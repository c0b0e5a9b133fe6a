// The parts of a link URL: scheme, body and query, as slices of the text, so that errors can give the offset.
// Percent-encoding is decoded only here; the result is UTF-8 without control characters.

import Glibc
import Protocols
import ServiceRuntime

struct LinkParts {
  let scheme: LinkScheme
  private let body: ArraySlice<UInt8>
  /// Everything after the scheme and its colon, query included.
  let textAfterScheme: String
  private var query: [String: ArraySlice<UInt8>] = [:]

  init(_ text: String) throws(LinkURLError) {
    let bytes = Array(text.utf8)
    guard bytes.count <= 4096 else { throw LinkURLError(at: 0, "link too long: the maximum is 4096 bytes") }
    let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
    let name = String(decoding: bytes[..<colon], as: UTF8.self)
    guard colon < bytes.count, let scheme = LinkURL.schemes.first(where: { $0.name == name }) else {
      throw LinkURLError(at: 0, LinkParts.advice(for: text, scheme: name))
    }
    self.scheme = scheme
    let mark = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.count
    body = bytes[(colon + 1)..<max(mark, colon + 1)]
    textAfterScheme = String(decoding: bytes[(colon + 1)...], as: UTF8.self)
    for pair in bytes[mark...].dropFirst().split(separator: UInt8(ascii: "&")) {
      let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
      let key = String(decoding: pair[..<equals], as: UTF8.self)
      guard scheme.keys.contains(key) else {
        let known = scheme.keys.isEmpty ? "\(scheme.name): links have no keys" : "known keys: \(scheme.keys.joined(separator: ", "))"
        throw LinkURLError(at: pair.startIndex, "unknown key \(quoted(key)) in the link; \(known)")
      }
      guard query.updateValue(pair[equals...].dropFirst(), forKey: key) == nil else {
        throw LinkURLError(at: pair.startIndex, "\(key) is set twice; remove one")
      }
    }
  }

  /// The body as an absolute path.
  func path() throws(LinkURLError) -> String {
    let path = try decoded(body)
    guard path.utf8.first == UInt8(ascii: "/"), path.utf8.count > 1 else {
      throw LinkURLError(at: body.startIndex, "the path is not absolute; write \(scheme.form)")
    }
    return path
  }

  /// The body as HOST:PORT or [ADDRESS]:PORT.
  func address() throws(LinkURLError) -> (host: String, port: Int) {
    guard let colon = body.lastIndex(of: UInt8(ascii: ":")), colon > body.startIndex, body.last != UInt8(ascii: "]") else {
      throw LinkURLError(at: body.startIndex, "HOST or PORT is missing; write \(scheme.form), as in tcp:192.168.0.10:35000")
    }
    let digits = body[(colon + 1)...]
    guard digits.count <= 5, let port = Int(String(decoding: digits, as: UTF8.self)), (1...65535).contains(port) else {
      throw LinkURLError(at: colon + 1, "\(quoted(digits)) is not a port; use a number from 1 to 65535")
    }
    var name = body[..<colon]
    guard name.first == UInt8(ascii: "[") else {
      if name.starts(with: "//".utf8) { throw LinkURLError(at: name.startIndex, "unexpected //; write \(scheme.form)") }
      if name.contains(UInt8(ascii: ":")) {
        throw LinkURLError(at: name.startIndex, "an IPv6 address needs brackets; write tcp:[::1]:35000")
      }
      if let wrong = name.firstIndex(where: { !isNameByte($0) }) {
        throw LinkURLError(at: wrong, "\(quoted(name)) is not a host; use a host name or an IP address")
      }
      return (String(decoding: name, as: UTF8.self), port)
    }
    name = name.dropFirst()
    let host = name.last == UInt8(ascii: "]") ? try decoded(name.dropLast()) : ""
    let pieces = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    var space = in6_addr()
    guard let address = pieces.first, inet_pton(AF_INET6, String(address), &space) == 1,
      pieces.count == 1 || (!pieces[1].isEmpty && pieces[1].utf8.allSatisfy(isNameByte))
    else { throw LinkURLError(at: name.startIndex, "not an IPv6 address; write tcp:[::1]:35000 or tcp:[fe80::1%25eth0]:35000") }
    return (host, port)
  }

  /// The body as the name of a network interface.
  func interface() throws(LinkURLError) -> String {
    guard (1...15).contains(body.count), body.allSatisfy(isNameByte), body.first != UInt8(ascii: ".") else {
      throw LinkURLError(at: body.startIndex, "\(quoted(body)) is not the name of an interface; write \(scheme.form), as in can:can0")
    }
    return String(decoding: body, as: UTF8.self)
  }

  /// The body as a BLE peer, with the keys of the query.
  func target() throws(LinkURLError) -> BLETarget {
    let name = try decoded(body)
    guard !name.isEmpty else {
      throw LinkURLError(
        at: body.startIndex, "the name is missing; write ble:NAME, ble:NAME*, ble:*PART*, ble:AA:BB:CC:DD:EE:FF or ble:auto")
    }
    guard name.contains(where: { $0 != "*" }) else {
      throw LinkURLError(at: body.startIndex, "the pattern matches every peripheral; write a part of the name, as in ble:Veepeak*")
    }
    var target = BLETarget(match: BLETarget.Match(name))
    if case .name(let name) = target.match, name.hasPrefix("*") {
      throw LinkURLError(at: body.startIndex, "a leading * needs a trailing *; write ble:\(printable(name))*")
    }
    if let bytes = query["adapter"] {
      target.adapter = try decoded(bytes)
      guard target.adapter.hasPrefix("hci"), UInt16(target.adapter.dropFirst(3)) != nil else {
        throw LinkURLError(at: bytes.startIndex, "\(quoted(bytes)) is not a Bluetooth adapter; use a name such as hci0")
      }
    }
    target.service = try uuid("service")
    target.notify = try uuid("notify")
    target.write = try uuid("write")
    if target.notify != nil, target.write == nil, let bytes = query["notify"] {
      throw LinkURLError(at: bytes.startIndex, "notify= requires write=; set both")
    }
    if let bytes = query["response"] {
      switch try decoded(bytes) {
      case "yes": target.response = true
      case "no": target.response = false
      default: throw LinkURLError(at: bytes.startIndex, "response \(quoted(bytes)) is invalid; use yes or no")
      }
    }
    return target
  }

  private func uuid(_ key: String) throws(LinkURLError) -> GATTUUID? {
    guard let bytes = query[key] else { return nil }
    guard let uuid = GATTUUID(try decoded(bytes)) else {
      throw LinkURLError(at: bytes.startIndex, "\(key) \(quoted(bytes)) is not a UUID; write 4 digits, as in FFF0, or all 32 with hyphens")
    }
    return uuid
  }

  /// A number of the query within its range, or nil if the key is not set.
  func number<Number: LosslessStringConvertible & Comparable>(
    _ key: String, in range: ClosedRange<Number>
  ) throws(LinkURLError) -> Number? {
    guard let bytes = query[key] else { return nil }
    guard let number = Number(try decoded(bytes)), range.contains(number) else {
      let wrong = "\(key) \(quoted(bytes)) is invalid; use a number from \(range.lowerBound) to \(range.upperBound)"
      throw LinkURLError(at: bytes.startIndex, wrong)
    }
    return number
  }

  private func decoded(_ bytes: ArraySlice<UInt8>) throws(LinkURLError) -> String {
    var result: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      let offset = rest.startIndex - 1
      var plain = byte
      if byte == UInt8(ascii: "%") {
        let pair = rest.prefix(2)
        guard pair.count == 2, pair.allSatisfy(isHexDigit), let code = UInt8(String(decoding: pair, as: UTF8.self), radix: 16) else {
          throw LinkURLError(at: offset, "% is not followed by two hex digits; write %25 for a percent sign")
        }
        plain = code
        rest = rest.dropFirst(2)
      }
      guard plain >= 0x20, plain != 0x7F else {
        throw LinkURLError(at: offset, "control character in the link; remove it")
      }
      result.append(plain)
    }
    guard let text = String(validating: result, as: UTF8.self) else {
      throw LinkURLError(at: bytes.startIndex, "the decoded text is not UTF-8; encode each byte, as in %C3%A9")
    }
    return text
  }

  private static func advice(for text: String, scheme: String) -> String {
    if text.hasPrefix("/") { return "the scheme is missing; write serial:\(printable(text))" }
    if scheme.contains(".") || scheme == "localhost" { return "the scheme is missing; write tcp:\(printable(text))" }
    let forms = LinkURL.schemes.map(\.form).joined(separator: ", ")
    let guess = nearest(to: scheme, among: LinkURL.schemes.map(\.name)).map { "; did you mean \($0):?" }
    return "unknown link scheme \(quoted(scheme))" + (guess ?? "; write one of \(forms)")
  }
}

private func isHexDigit(_ byte: UInt8) -> Bool { Character(Unicode.Scalar(byte)).isHexDigit }

private func isNameByte(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
  case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
  default: false
  }
}
