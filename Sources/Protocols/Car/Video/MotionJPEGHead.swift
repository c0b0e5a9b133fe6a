// Parses the header fields that a stream of pictures requires, in the response and in each part. Invalid fields are ignored.
// Source: RFC 9110 §8 (names in any case), RFC 2045 §5.1 (parameters, quoted or not), RFC 2046 §5.1.1 (boundary).

extension MotionJPEG {
  struct Head: Sendable {
    /// The maximum length of a boundary in bytes. RFC 2046 allows 70; longer boundaries are tolerated.
    static let maxBoundaryLength = 200

    /// The status, such as `200 OK`; nil before the first line, or if the first line is not a status line.
    private(set) var status: String?
    /// The media type as received, such as `image/jpeg`.
    private(set) var type: String?
    /// The length in bytes; nil if it is missing or invalid.
    private(set) var length: Int?
    private(set) var isChunked = false
    private var isFirst = true

    /// Parses a line, without its end.
    mutating func read(_ line: [UInt8]) {
      defer { isFirst = false }
      if isFirst, line.starts(with: Array("HTTP/1.".utf8)), let blank = line.firstIndex(of: space) {
        status = printable(Self.trimmed(line[blank...]), limit: 60)
      }
      guard let end = line.firstIndex(of: colon) else { return }
      let value = Self.trimmed(line[(end + 1)...])
      switch Self.lower(line[..<end]) {
      case "content-type": type = String(decoding: value, as: UTF8.self)
      case "content-length": length = value.allSatisfy(isDigit) ? Int(String(decoding: value, as: UTF8.self)) : nil
      case "transfer-encoding": isChunked = Self.lower(value) != "identity"
      default: break
      }
    }

    /// A media type in lower case without its parameters: `multipart/x-mixed-replace` for `Multipart/X-Mixed-Replace; boundary=frame`.
    static func essence(_ type: String) -> String { lower(trimmed(type.utf8.prefix { $0 != UInt8(ascii: ";") })) }

    /// The parameter `boundary` of a media type.
    static func boundary(_ type: String) -> [UInt8]? {
      var rest = Array(type.utf8)[...].drop { $0 != UInt8(ascii: ";") }
      while rest.popFirst() != nil {  // the semicolon
        let name = lower(trimmed(rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }))
        rest = rest.drop { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
        let value = rest.first == UInt8(ascii: "=") ? parameter(&rest) : []
        if name == "boundary" { return (1...maxBoundaryLength).contains(value.count) ? value : nil }
        rest = rest.drop { $0 != UInt8(ascii: ";") }
      }
      return nil
    }

    /// The value after the equals sign; a quoted one can contain anything.
    private static func parameter(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
      rest = rest.dropFirst().drop(while: isBlank)
      guard rest.first == UInt8(ascii: "\"") else {
        let value = rest.prefix { $0 != UInt8(ascii: ";") }
        rest = rest.dropFirst(value.count)
        return trimmed(value)
      }
      rest = rest.dropFirst()
      var value: [UInt8] = []
      while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
        guard let plain = byte == UInt8(ascii: "\\") ? rest.popFirst() : byte else { break }
        value.append(plain)
      }
      return value
    }

    private static func trimmed(_ bytes: some Collection<UInt8>) -> [UInt8] {
      var rest = Array(bytes.drop(while: isBlank))
      while let last = rest.last, isBlank(last) { rest.removeLast() }
      return rest
    }

    private static func lower(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self).lowercased() }
  }
}
