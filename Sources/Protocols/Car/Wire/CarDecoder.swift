// Decodes the car's frames from a stream of bytes in pieces of any size. A frame ends with `%^%`; the line end that an as-built car adds is
// optional. Invalid data up to the next terminator is dropped, reported and counted. At most 64 KiB are buffered.
// Source: AutoTT, TCP.py, which sends `TYPE#$#BODY%^%` CR LF. One read can contain several frames. `#$#` and `%^%` cannot be escaped.

/// A frame from the car.
struct CarInboundMessage: Sendable, Equatable {
  /// 1 to 32 printable characters, case-sensitive.
  let type: String
  /// The body as received.
  let body: [UInt8]
}

/// Decodes the car's bytes.
struct CarDecoder: Sendable {
  /// The result at a terminator.
  enum Item: Sendable, Equatable {
    case message(CarInboundMessage)
    case dropped(Drop)
  }

  /// Why received data is not a frame, and its first bytes.
  struct Drop: Sendable, Equatable {
    enum Reason: String, Sendable {
      case noTerminator = "more than 64 KiB without a terminator"
      case noDelimiter = "no #$# in a message"
      case invalidType = "invalid message type"
      case twoMessages = "#$# in the body of a message, or a missing terminator"
    }

    let reason: Reason
    let start: [UInt8]

    init(_ reason: Reason, _ bytes: ArraySlice<UInt8>) { (self.reason, start) = (reason, Array(bytes.prefix(60))) }

    /// The text of the log message.
    var message: String { "dropped: \(reason.rawValue): \"\(CarText.clean(start[...], limit: 60))\"" }
  }

  static let limit = 64 * 1024
  static let maxTypeLength = 32

  private var buffer: [UInt8] = []
  /// Whether the buffer limit was exceeded without a terminator.
  private(set) var isOverrun = false
  /// The number of dropped frames since the decoder was created.
  private(set) var badFrames = 0

  /// The number of buffered bytes of an incomplete frame.
  var bufferedCount: Int { buffer.count }

  /// Removes bytes up to the end of the next frame, and returns it; nil when no bytes are left.
  mutating func next(_ bytes: inout ArraySlice<UInt8>) -> Item? {
    while let byte = bytes.popFirst() {
      // A line end between two frames is ignored.
      if buffer.isEmpty, byte == 0x0D || byte == 0x0A { continue }
      buffer.append(byte)
      if byte == CarFrame.terminator[2], buffer.ends(with: CarFrame.terminator) {
        if let item = close() { return item }
      } else if buffer.count >= Self.limit {
        let isFirst = !isOverrun
        let drop = isFirst ? drop(.noTerminator, buffer[...]) : nil
        isOverrun = true
        // The last two bytes may be the start of the terminator.
        buffer.removeFirst(buffer.count - 2)
        if let drop { return drop }
      }
    }
    return nil
  }

  /// Resets the decoder for a new link.
  mutating func reset() {
    buffer = []
    isOverrun = false
  }

  /// Ends a frame at its terminator; returns nil if the frame was dropped already.
  private mutating func close() -> Item? {
    defer {
      buffer.removeAll(keepingCapacity: buffer.count < 4096)
      isOverrun = false
    }
    if isOverrun { return nil }
    let content = buffer.dropLast(CarFrame.terminator.count)
    guard let position = content.firstIndex(of: CarFrame.delimiter) else { return drop(.noDelimiter, content) }
    let type = content[..<position]
    let body = content[(position + CarFrame.delimiter.count)...]
    guard (1...Self.maxTypeLength).contains(type.count), type.allSatisfy({ (0x20..<0x7F).contains($0) }) else {
      return drop(.invalidType, content)
    }
    // The terminator between two messages was lost, so neither of them may be complete.
    guard body.firstIndex(of: CarFrame.delimiter) == nil else { return drop(.twoMessages, content) }
    return .message(CarInboundMessage(type: String(decoding: type, as: UTF8.self), body: Array(body)))
  }

  private mutating func drop(_ reason: Drop.Reason, _ bytes: ArraySlice<UInt8>) -> Item {
    badFrames &+= 1
    return .dropped(Drop(reason, bytes))
  }
}

extension [UInt8] {
  /// Whether these are the last three bytes.
  fileprivate func ends(with end: [UInt8]) -> Bool {
    count >= 3 && self[count - 1] == end[2] && self[count - 2] == end[1] && self[count - 3] == end[0]
  }
}
