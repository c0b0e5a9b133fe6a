// Assembles the text messages of a browser from WebSocket frames. Source: RFC 6455, sections 5 and 7.4.

import NIOCore
import NIOWebSocket

/// Why a WebSocket is closed: the code and the reason that the browser receives.
struct CloseReason: Error, Equatable {
  /// The maximum length of the text, in bytes: what is left of the payload of a control frame.
  static let maxLength = 123

  let code: WebSocketErrorCode
  let text: String

  /// A text that is too long is cut.
  init(_ code: WebSocketErrorCode, _ text: String) {
    self.code = code
    var text = text
    while text.utf8.count > Self.maxLength { text.removeLast() }
    self.text = text
  }

  /// 1008.
  static func refused(_ text: String) -> CloseReason { CloseReason(.policyViolation, text) }
  /// 1013 (try again later), which NIO has no name for.
  static func unavailable(_ text: String) -> CloseReason { CloseReason(.unknown(1013), text) }
}

struct MessageAssembler {
  /// The maximum length of a message, in bytes.
  static let maxLength = 64 << 10

  /// The fragments so far; nil between messages.
  private var partial: ByteBuffer?

  /// Returns the message that a data frame completes; nil if fragments are missing.
  mutating func add(_ frame: WebSocketFrame) throws(CloseReason) -> ByteBuffer? {
    if frame.opcode == .binary { throw CloseReason(.unacceptableData, "binary messages are not supported; send text") }
    guard (frame.opcode == .continuation) == (partial != nil) else {
      throw CloseReason(.protocolError, "unexpected fragment of a message")
    }
    var data = frame.unmaskedData
    guard (partial?.readableBytes ?? 0) + data.readableBytes <= Self.maxLength else {
      throw CloseReason(.messageTooLarge, "the message is longer than \(Self.maxLength) bytes")
    }
    if partial == nil { partial = data } else { partial?.writeBuffer(&data) }
    guard frame.fin else { return nil }
    defer { partial = nil }
    return partial
  }
}
