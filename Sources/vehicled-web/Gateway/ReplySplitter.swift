// Splits the bytes of a service at the NULs that end Varlink messages. A message that arrives in parts is passed on in parts, as fragments
// of one WebSocket message, so that none is ever held in memory as a whole.

import NIOCore
import NIOWebSocket

struct ReplySplitter {
  private var isInMessage = false

  /// Returns the frames for received bytes. A frame with `fin` ends a message.
  mutating func frames(_ bytes: ByteBuffer) -> [WebSocketFrame] {
    var (rest, frames) = (bytes, [WebSocketFrame]())
    while rest.readableBytes > 0 {
      let end = rest.readableBytesView.firstIndex(of: 0)
      let length = (end ?? rest.writerIndex) - rest.readerIndex
      guard let part = rest.readSlice(length: length) else { break }
      if end != nil { rest.moveReaderIndex(forwardBy: 1) }
      frames.append(WebSocketFrame(fin: end != nil, opcode: isInMessage ? .continuation : .text, data: part))
      isInMessage = end == nil
    }
    return frames
  }
}
