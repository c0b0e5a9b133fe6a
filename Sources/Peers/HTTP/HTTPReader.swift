// Collects the bytes of a request until it is complete or invalid, in linear time and bounded memory.
// Facts: RFC 9112 §6 (a body is as long as Content-Length; without it there is none), RFC 9110 §15.5 (411, 413, 431).

import Protocols

/// Reads one request.
struct HTTPReader: Sendable {
  enum Outcome: Sendable, Equatable {
    case unfinished
    case complete(ReceivedHTTPRequest)
    /// An invalid request: a status, and the reason.
    case rejected(Int, String)
  }

  private static let maxHeadSize = 16_384
  private static let end = Array("\r\n\r\n".utf8)
  private let maxBodySize: Int
  private var bytes: [UInt8] = []
  private var head: (request: ReceivedHTTPRequest, length: Int)?

  /// Creates a reader of bodies of up to `maxBodySize` bytes.
  init(maxBodySize: Int = 0) { self.maxBodySize = maxBodySize }

  /// Handles received bytes. A reader reads a single request.
  mutating func take(_ more: [UInt8]) -> Outcome {
    let from = max(0, bytes.count - Self.end.count + 1)
    bytes += more
    if head == nil {
      guard let stop = Self.emptyLine(in: bytes, from: from), stop <= Self.maxHeadSize else {
        return bytes.count < Self.maxHeadSize ? .unfinished : .rejected(431, "the request is too long")
      }
      let request = ReceivedHTTPRequest(head: bytes[..<stop])
      guard request.fields["transfer-encoding"] == nil else { return .rejected(411, "the body has no Content-Length") }
      let contentLength = request.fields["content-length"] ?? "0"
      guard let length = Int(contentLength), length >= 0 else { return .rejected(400, "the Content-Length is not a number") }
      guard length <= maxBodySize else { return .rejected(413, "a body of \(length) bytes is too long") }
      head = (request, length)
      bytes.removeFirst(stop + Self.end.count)
    }
    guard let head, bytes.count >= head.length else { return .unfinished }
    var request = head.request
    request.body = Array(bytes.prefix(head.length))
    return .complete(request)
  }

  /// The position of the first empty line from `start` on.
  private static func emptyLine(in bytes: [UInt8], from start: Int) -> Int? {
    guard bytes.count >= start + end.count else { return nil }
    return (start...bytes.count - end.count).first { bytes[$0] == end[0] && bytes[$0..<$0 + end.count].elementsEqual(end) }
  }
}
