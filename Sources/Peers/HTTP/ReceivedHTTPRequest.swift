// One request of HTTP/1.1 as it comes in: bytes collected until the request is whole, and what it says. It is as lenient as the
// oldest client of ours needs, and bounded whoever asks. It must never read beyond the request: what follows is nobody's.
// Facts: RFC 9112; triviatoy.md §C (two spaces before HTTP/1.1, garbage behind the empty line).

import Protocols

/// What a client asked.
struct ReceivedHTTPRequest: Sendable, Equatable {
  /// As it was written; empty where there is none.
  var method: String
  /// The second word of the first line up to its `?`, as it was written.
  var path: String
  /// Percent-encoding undone.
  var query: [String: String]
  /// By their names in lower case; what is said twice is joined by `, `.
  var fields: [String: String]
  var body: [UInt8] = []

  /// Reads a head: lines up to the empty one, which is left out. Any number of spaces stands between the words of the first.
  init(head: some Collection<UInt8>) {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
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

  /// Percent-encoding undone.
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
