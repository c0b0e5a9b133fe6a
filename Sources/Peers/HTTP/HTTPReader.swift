// Collects the bytes of a request until it is complete or invalid, in linear time and bounded memory.
// Source: RFC 9112 §6 (Content-Length is the length of the body; without it, there is no body), RFC 9110 §15.5 (411, 413, 431).

import Protocols

/// Reads one request.
struct HTTPReader: Sendable {
  enum Outcome: Sendable, Equatable {
    case unfinished
    case complete(ReceivedHTTPRequest)
    /// An invalid request: a status, and the reason.
    case rejected(Int, String)
  }

  private static let maxHeaderSize = 16_384
  private static let headerEnd = Array("\r\n\r\n".utf8)
  private let maxBodySize: Int
  private var bytes: [UInt8] = []
  /// The request without its body, and the length of the body.
  private var header: (request: ReceivedHTTPRequest, length: Int)?

  /// Creates a reader of bodies of up to `maxBodySize` bytes.
  init(maxBodySize: Int = 0) { self.maxBodySize = maxBodySize }

  /// Handles received bytes. A reader reads a single request.
  mutating func receive(_ more: [UInt8]) -> Outcome {
    let from = max(0, bytes.count - Self.headerEnd.count + 1)
    bytes += more
    if header == nil {
      guard let stop = Self.emptyLine(in: bytes, from: from), stop <= Self.maxHeaderSize else {
        return bytes.count < Self.maxHeaderSize ? .unfinished : .rejected(431, "the request is too long")
      }
      let request = ReceivedHTTPRequest(header: bytes[..<stop])
      guard request.fields["transfer-encoding"] == nil else { return .rejected(411, "the body has no Content-Length") }
      let contentLength = request.fields["content-length"] ?? "0"
      // Int also accepts a sign.
      guard !contentLength.hasPrefix("+"), let length = Int(contentLength), length >= 0 else {
        return .rejected(400, "the Content-Length is not a number")
      }
      guard length <= maxBodySize else { return .rejected(413, "a body of \(length) bytes is too long") }
      header = (request, length)
      bytes.removeFirst(stop + Self.headerEnd.count)
    }
    guard let header, bytes.count >= header.length else { return .unfinished }
    var request = header.request
    request.body = Array(bytes.prefix(header.length))
    return .complete(request)
  }

  /// The position of the first empty line at or after `start`.
  private static func emptyLine(in bytes: [UInt8], from start: Int) -> Int? {
    guard bytes.count >= start + headerEnd.count else { return nil }
    return (start...bytes.count - headerEnd.count).first {
      bytes[$0] == headerEnd[0] && bytes[$0..<$0 + headerEnd.count].elementsEqual(headerEnd)
    }
  }
}
