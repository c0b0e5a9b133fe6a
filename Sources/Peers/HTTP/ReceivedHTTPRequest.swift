// A received HTTP/1.1 request. The parser is as lenient as the toy's firmware requires.
// Source: RFC 9112; the firmware of the Trivio toy, which sends two spaces before HTTP/1.1 and garbage after the empty line.

import Protocols

/// A request of a client.
struct ReceivedHTTPRequest: Sendable, Equatable {
  /// The method as sent; empty if there is none.
  var method: String
  /// The part of the target before `?`, as sent.
  var path: String
  /// The parameters, percent-decoded.
  var query: [String: String]
  /// The header fields by lower-case name; repeated fields are joined by `, `.
  var fields: [String: String]
  var body: [UInt8] = []

  /// Parses the request line and header, without the empty line. The request line may have several spaces between its words.
  init(header: some Collection<UInt8>) {
    let lines = String(decoding: header, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
    let words = lines[0].split(separator: " ")
    method = words.first.map(String.init) ?? ""
    let target = (words.count > 1 ? words[1] : "").split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    path = target.first.map(String.init) ?? ""
    query = [:]
    for part in (target.count > 1 ? target[1] : "").split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      query[String(pair[0])] = Self.decoded(pair.count > 1 ? pair[1] : "")
    }
    fields = [:]
    for line in lines.dropFirst() {
      let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2 else { continue }
      let (name, value) = (pair[0].lowercased(), Self.trimmed(pair[1]))
      fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }
  }

  private static func trimmed(_ text: Substring) -> String {
    let isText: (Character) -> Bool = { $0 != " " && $0 != "\t" }
    guard let first = text.firstIndex(where: isText), let last = text.lastIndex(where: isText) else { return "" }
    return String(text[first...last])
  }

  /// Decodes percent-encoding, and `+` as a space.
  private static func decoded(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == 0x25, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), rest.count >= 2 {
        bytes.append(code)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte == 0x2B ? 0x20 : byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
