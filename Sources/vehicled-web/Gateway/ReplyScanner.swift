// Finds out whether another reply to the same call follows, from the bytes of a reply as they pass. Nothing is stored or decoded: only the
// top-level member `"continues": true` is looked for, which may be anywhere in the message.

import NIOCore
import NIOWebSocket

struct ReplyScanner {
  private static let key = Array("continues".utf8)

  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  /// Whether the next or current string is a top-level key.
  private var isKey = false
  /// The number of bytes of `key` with which the current string begins; nil if it differs.
  private var matched: Int?
  /// Whether the value that follows is that of `key`.
  private var isValue = false
  private var continues = false

  /// Scans a frame of the service. Returns whether another reply follows if the frame ends a message, or else nil.
  mutating func scan(_ frame: WebSocketFrame) -> Bool? {
    frame.data.withUnsafeReadableBytes { bytes in for byte in bytes { scan(byte) } }
    guard frame.fin else { return nil }
    defer { self = ReplyScanner() }
    return continues
  }

  private mutating func scan(_ byte: UInt8) {
    guard !isInString else { return scanText(byte) }
    switch byte {
    case UInt8(ascii: "\""): (isInString, matched) = (true, depth == 1 && isKey ? 0 : nil)
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      depth += 1
      (isKey, isValue) = (depth == 1, false)
    case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
    case UInt8(ascii: ","): if depth == 1 { (isKey, isValue) = (true, false) }
    case UInt8(ascii: ":"): if depth == 1 { isKey = false }
    // Of `true`, the only value with this byte.
    case UInt8(ascii: "t"): if depth == 1, isValue { continues = true }
    default: break
    }
  }

  /// A byte of a string.
  private mutating func scanText(_ byte: UInt8) {
    if isEscaped {
      isEscaped = false
    } else if byte == UInt8(ascii: "\"") {
      isInString = false
      if matched == Self.key.count { isValue = true }
      return
    } else {
      isEscaped = byte == UInt8(ascii: "\\")
    }
    if let count = matched { matched = count < Self.key.count && byte == Self.key[count] ? count + 1 : nil }
  }
}
