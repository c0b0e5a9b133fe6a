// Link URLs as text: parts, percent-encoding, and whether a link leads to a candidate. No I/O, except to resolve symbolic links. The rules
// are those of the daemon; see vehicled.toml(5).

import Glibc
import Varlink

enum LinkText {
  /// The decoded part of a URL between the scheme and the query; nil without a scheme or if the encoding is invalid.
  static func body(of url: String) -> String? {
    guard let colon = url.firstIndex(of: ":") else { return nil }
    return decoded(url[url.index(after: colon)...].prefix { $0 != "?" })
  }

  /// The URL for display: spaces instead of `%20`.
  static func readable(_ url: String) -> String { decoded(url[...]) ?? url }

  private static func decoded(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else { return nil }
      bytes.append(code)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Percent-encodes `%`, `?`, spaces and control characters.
  static func encoded(_ text: String) -> String {
    let bytes = text.utf8.flatMap { byte -> [UInt8] in
      guard byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "%") || byte == UInt8(ascii: "?") else { return [byte] }
      let digits = String(byte, radix: 16, uppercase: true)
      return Array("%\(digits.count < 2 ? "0" : "")\(digits)".utf8)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Whether `ble:NAME` matches exactly the peripherals with this name: the name is printable, and neither a pattern nor an address.
  static func isExactName(_ name: String) -> Bool {
    !name.isEmpty && name != "auto" && !name.hasPrefix("*") && !name.hasSuffix("*") && !isAddress(name) && Output.oneLine(name) == name
  }

  private static func isAddress(_ text: String) -> Bool {
    let pairs = text.split(separator: ":", omittingEmptySubsequences: false)
    return pairs.count == 6 && pairs.allSatisfy { $0.utf8.count == 2 && $0.allSatisfy(\.isHexDigit) }
  }

  /// Whether a configured link leads to this candidate. `ble:auto` does so while it is connected to the candidate.
  static func leads(_ link: Contract.Link, to candidate: Candidate) -> Bool {
    let isPeer = link.details?["peer"]?.uppercased().contains(candidate.address.uppercased()) == true
    return candidate.transport == "ble" && link.url.hasPrefix("ble:") && isPeer || leads(link.url, to: candidate)
  }

  /// Whether a link URL leads to this candidate.
  static func leads(_ url: String, to candidate: Candidate) -> Bool {
    guard url.hasPrefix("\(candidate.transport):"), let body = body(of: url) else { return false }
    switch candidate.transport {
    case "ble":
      return body.uppercased() == candidate.address.uppercased() || matches(body, candidate.name ?? "")
    case "serial": return file(body) == file(candidate.address)
    case "slcan" where body.hasPrefix("serial:"): return file(String(body.dropFirst(7))) == file(String(candidate.address.dropFirst(7)))
    default: return host(body) == host(candidate.address)
    }
  }

  /// The address, with 127.0.0.1 in place of localhost.
  private static func host(_ address: String) -> String {
    address.hasPrefix("localhost:") ? "127.0.0.1:\(address.dropFirst("localhost:".count))" : address
  }

  private static func matches(_ pattern: String, _ name: String) -> Bool {
    guard !name.isEmpty, pattern != "auto" else { return false }
    guard pattern.hasSuffix("*") else { return pattern == name }
    let text = pattern.dropLast()
    return text.hasPrefix("*") ? name.contains(text.dropFirst()) : name.hasPrefix(text)
  }

  /// The path with symbolic links resolved.
  private static func file(_ path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
