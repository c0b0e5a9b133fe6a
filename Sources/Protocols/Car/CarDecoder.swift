// The car's frames out of a stream of bytes, fed in any pieces. A frame ends with `%^%`; the line end that the car as built
// adds is skipped, and may be missing. What is no frame is dropped up to the next end mark, by name and counted, and never
// becomes half a message. No more than 64 KiB ever wait.
// Facts: autoTT's TCP.py sends `TYPE#$#BODY%^%` CR LF; frames coalesce, and there is no escape for the marks.

/// A frame that the car sent.
struct CarMessage: Sendable, Equatable {
  /// 1 to 32 printable characters, case as sent.
  var type: String
  /// As it came.
  var body: [UInt8]
}

/// Takes the car's bytes.
struct CarDecoder: Sendable {
  /// What an end mark gives.
  enum Item: Sendable, Equatable {
    case message(CarMessage)
    case dropped(Drop)
  }

  /// Why what came is no message, and how it begins.
  struct Drop: Sendable, Equatable {
    enum Reason: String, Sendable {
      case endless = "more than 64 KiB came without an end mark"
      case bodiless = "a message without #$#"
      case nameless = "a message whose type is no word"
      case glued = "a message with #$# in its body, or two that lost the mark between them"
    }

    var reason: Reason
    var start: [UInt8]

    init(_ reason: Reason, _ bytes: ArraySlice<UInt8>) { (self.reason, start) = (reason, Array(bytes.prefix(60))) }

    /// For a person.
    var words: String { "dropped: \(reason.rawValue): \"\(CarText.clean(start[...], limit: 60))\"" }
  }

  static let limit = 64 * 1024
  static let maxTypeLength = 32

  private var buffer: [UInt8] = []
  /// More came without an end mark than is kept.
  private(set) var isOverrun = false
  /// Frames that were dropped since the machine was made.
  private(set) var badFrames = 0

  /// Bytes that wait for their end mark.
  var waiting: Int { buffer.count }

  /// Takes bytes as they come, up to what is complete with them; nil once all are taken.
  mutating func take(_ bytes: inout ArraySlice<UInt8>) -> Item? {
    while let byte = bytes.popFirst() {
      // Between two frames a line end means nothing.
      if buffer.isEmpty, byte == 0x0D || byte == 0x0A { continue }
      buffer.append(byte)
      if byte == CarFrame.endMark[2], buffer.ends(with: CarFrame.endMark) {
        if let item = close() { return item }
      } else if buffer.count >= Self.limit {
        let isNews = !isOverrun
        let drop = isNews ? drop(.endless, buffer[...]) : nil
        isOverrun = true
        // The mark may have begun.
        buffer.removeFirst(buffer.count - 2)
        if let drop { return drop }
      }
    }
    return nil
  }

  /// The link is another one.
  mutating func reset() {
    buffer = []
    isOverrun = false
  }

  /// The end mark has come; nil where what it ends was dropped already.
  private mutating func close() -> Item? {
    defer {
      buffer.removeAll(keepingCapacity: buffer.count < 4096)
      isOverrun = false
    }
    if isOverrun { return nil }
    let content = buffer.dropLast(CarFrame.endMark.count)
    guard let mark = content.firstIndex(of: CarFrame.bodyMark) else { return drop(.bodiless, content) }
    let type = content[..<mark]
    let body = content[(mark + CarFrame.bodyMark.count)...]
    guard (1...Self.maxTypeLength).contains(type.count), type.allSatisfy({ (0x20..<0x7F).contains($0) }) else {
      return drop(.nameless, content)
    }
    // Its end mark was lost and the next message came into it: neither of the two is known to be whole.
    guard body.firstIndex(of: CarFrame.bodyMark) == nil else { return drop(.glued, content) }
    return .message(CarMessage(type: String(decoding: type, as: UTF8.self), body: Array(body)))
  }

  private mutating func drop(_ reason: Drop.Reason, _ bytes: ArraySlice<UInt8>) -> Item {
    badFrames &+= 1
    return .dropped(Drop(reason, bytes))
  }
}

extension [UInt8] {
  /// Whether the last three bytes are these.
  fileprivate func ends(with mark: [UInt8]) -> Bool {
    count >= 3 && self[count - 1] == mark[2] && self[count - 2] == mark[1] && self[count - 3] == mark[0]
  }
}
