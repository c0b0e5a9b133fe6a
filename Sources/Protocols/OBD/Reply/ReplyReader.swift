// Parses a reply into messages, in every form that an ELM327 prints: with headers (`7EC103E62…`, `18DAF111…`), with spaces, without headers
// (`03E`, `0:62…`, `1:…`), without line ends. The whole reply is rejected if one character is wrong, or if messages of several ECUs are
// interleaved without headers. This is a hot path: it works on bytes in place and reuses its storage.

struct ReplyReader: Sendable {
  /// The result of parsing a reply.
  enum Outcome: Equatable {
    /// One or more complete messages, in `messages`.
    case messages
    /// There is nothing between the command and the prompt.
    case empty
    case status(ELMStatus)
    /// Unusable, with the reason.
    case unreadable(String)
  }

  /// The messages of the last reply.
  private(set) var messages: [ISOTPMessage] = []
  /// The bytes of all messages, one after the other.
  private(set) var payload: [UInt8] = []

  /// Whether the adapter is known to omit the checksums of pre-CAN protocols, so that the length must match instead.
  private(set) var omitsChecksums = false
  /// Whether at least one line of the last reply had a valid checksum, and whether at least one was complete except for the checksum.
  private(set) var checksums: (hasValid: Bool, hasMissing: Bool) = (false, false)

  /// The address byte of the frames of the last reply, or nil if they have none.
  private var addressByte: UInt8?

  /// Sets whether lines of pre-CAN protocols must have a checksum.
  mutating func expectChecksums(_ expects: Bool) { omitsChecksums = !expects }

  mutating func noteValidChecksum() { checksums.hasValid = true }
  mutating func noteMissingChecksum() { checksums.hasMissing = true }

  /// The maximum number of digits of a data line: a 29-bit header and eight bytes, or a K-line frame.
  private static let maxLineLength = 32
  /// The maximum number of digits of a line if line ends are missing: negative responses of other ECUs can then precede the data.
  private static let maxDigits = 128

  /// The bytes of a message of the last reply.
  func bytes(of message: ISOTPMessage) -> ArraySlice<UInt8> { payload[message.start..<message.start + message.length] }

  /// Removes the messages of the last reply.
  mutating func beginReply() {
    messages.removeAll(keepingCapacity: true)
    payload.removeAll(keepingCapacity: true)
    checksums = (false, false)
  }

  /// Adds a whole message. Messages beyond the limit are dropped.
  mutating func add(_ bytes: [UInt8], from source: UInt32) {
    guard messages.count < Self.maxMessages else { return }
    var message = ISOTPMessage(source: source, start: payload.count, length: bytes.count)
    message.recordFrame(bytes.count)
    messages.append(message)
    payload.append(contentsOf: bytes)
  }

  /// Parses a reply without its prompt, beginning at index `start`. `addressByte` precedes the content of each frame, unless it is nil.
  mutating func read(_ reply: [UInt8], from start: Int = 0, addressByte: UInt8? = nil) -> Outcome {
    beginReply()
    self.addressByte = addressByte
    do throws(Unreadable) {
      let isHex = try reply.withUnsafeBufferPointer { text throws(Unreadable) in
        try readHex(UnsafeBufferPointer(rebasing: text[min(start, text.count)...]))
      }
      if !isHex { return readText(reply[min(start, reply.count)...]) }
      for message in messages where !message.isComplete { throw Unreadable("incomplete message") }
    } catch {
      if readWithoutLineEnds(reply[min(start, reply.count)...]) { return .messages }
      // A frame may be truncated for the reason printed after it: BUFFER FULL, LV RESET.
      if case .status(let status) = readText(reply[min(start, reply.count)...], includingData: false) { return .status(status) }
      return .unreadable(error.reason)
    }
    return messages.isEmpty ? .empty : .messages
  }

  /// Parses frames with headers but without line ends. Returns false unless all frames have full length and form complete messages.
  private mutating func readWithoutLineEnds(_ reply: ArraySlice<UInt8>) -> Bool {
    let text = reply.filter { $0 != space && $0 != tab }.drop(while: isLineEnd)
    let digits = text.prefix { !isLineEnd($0) }
    guard digits.count > Self.maxLineLength, digits.allSatisfy(isHexDigit), text.dropFirst(digits.count).allSatisfy(isLineEnd) else {
      return false
    }
    for width in Self.fullLineLengths where digits.count.isMultiple(of: width) {
      messages.removeAll(keepingCapacity: true)
      payload.removeAll(keepingCapacity: true)
      let lines = stride(from: 0, to: digits.count, by: width).flatMap { digits.dropFirst($0).prefix(width) + [carriageReturn] }
      let isHex = try? lines.withUnsafeBufferPointer { lines throws(Unreadable) in try readHex(lines) }
      if isHex == true, messages.allSatisfy(\.isComplete) { return true }
    }
    return false
  }

  /// The number of digits of a line with an identifier of 11 or 29 bits and eight bytes.
  private static let fullLineLengths = [19, 24]

  /// Parses a reply that is not purely hex digits: a notice before the data, a status, or unknown text.
  private mutating func readText(_ reply: ArraySlice<UInt8>, includingData: Bool = true) -> Outcome {
    var data: [UInt8] = []
    var status: ELMStatus?
    var isUnknown = false
    for line in reply.split(whereSeparator: isLineEnd) {
      switch ELMLine(line) {
      case .nothing: continue
      case .hex(let digits): data += digits + [carriageReturn]
      case .text: isUnknown = true
      case .status(let found): if status == nil || found.consequence == .reinitialise { status = found }
      }
    }
    if let status { return .status(status) }
    if isUnknown { return .unreadable("unknown text in the data") }
    return data.isEmpty || !includingData ? .empty : read(data, addressByte: addressByte)
  }

  /// Parses lines of hex digits; returns false at another character.
  private mutating func readHex(_ text: UnsafeBufferPointer<UInt8>) throws(Unreadable) -> Bool {
    try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.maxDigits) { digits throws(Unreadable) in
      var count = 0
      var segment = Segment.line
      for byte in text {
        let value = hexValue(byte)
        if value < 16 {
          guard count < Self.maxDigits else { throw Unreadable("line too long") }
          digits[count] = value
          count += 1
        } else if isLineEnd(byte) {
          if count > 0 || segment != .line { try addLine(segment, digits, count) }
          segment = .line
          count = 0
        } else if byte == colon {
          // The digit before the colon is the number of the line that begins here; the digits before it belong to the previous line if the
          // line end was lost.
          guard count > 0 else { throw Unreadable("line number missing") }
          let number = digits[count - 1]
          let skipped = segment == .line && number == 0 ? Self.negativeResponseDigits(beforeLast: 3, digits, count - 1) : 0
          if count > 1 || segment != .line {
            try addLine(segment, Digits(rebasing: digits[skipped...]), count - 1 - skipped)
          }
          segment = .numbered(number)
          count = 0
        } else if byte != space && byte != tab {
          return false
        }
      }
      if count > 0 || segment != .line { try addLine(segment, digits, count) }
      return true
    }
  }

  /// The kind of a line.
  private enum Segment: Equatable {
    case line
    /// A line that begins with this number and a colon.
    case numbered(UInt8)
  }

  /// The values of hex digits.
  typealias Digits = UnsafeMutableBufferPointer<UInt8>

  /// The number of leading digits that are negative responses (7F, service, code) of other ECUs, whose line ends are missing. The last
  /// `length` of the `count` digits are the length of a message.
  private static func negativeResponseDigits(beforeLast length: Int, _ digits: Digits, _ count: Int) -> Int {
    guard count > length, (count - length).isMultiple(of: 6) else { return 0 }
    let areNegative = stride(from: 0, to: count - length, by: 6).allSatisfy { digits[$0] == 7 && digits[$0 + 1] == 0xF }
    return areNegative ? count - length : 0
  }

  /// Parses one line. The number of digits shows the kind of line: a line with an 11-bit identifier has an odd number.
  private mutating func addLine(_ segment: Segment, _ digits: Digits, _ count: Int) throws(Unreadable) {
    if case .numbered(let number) = segment {
      guard count.isMultiple(of: 2), count <= 14 else { throw Unreadable("numbered line of wrong length") }
      try continueUnattributed(number, Octets(digits, 0, count))
    } else if count == 3 {
      try beginUnattributed(length: Int(digits[0]) << 8 | Int(digits[1]) << 4 | Int(digits[2]))
    } else if count > 3 && !count.isMultiple(of: 2) {
      let source = UInt32(digits[0]) << 8 | UInt32(digits[1]) << 4 | UInt32(digits[2])
      guard source <= 0x7FF else { throw Unreadable("line without a CAN identifier") }
      try add(frame: Octets(digits, 3, count), from: source)
    } else if count >= 2 && count.isMultiple(of: 2) {
      try addWholeBytes(digits, count)
    } else {
      throw Unreadable("line too short")
    }
  }

  /// Parses a line of whole bytes: a frame with a 29-bit identifier, a K-line or J1850 frame, or a message without a header.
  private mutating func addWholeBytes(_ digits: Digits, _ count: Int) throws(Unreadable) {
    let octets = Octets(digits, 0, count)
    switch octets[0] {
    case 0..<0x20 where count >= 10:
      let source = UInt32(octets[0]) << 24 | UInt32(octets[1]) << 16 | UInt32(octets[2]) << 8 | UInt32(octets[3])
      try add(frame: Octets(digits, 8, count), from: source)
    case 0x80..<0xC0 where octets.count >= 5: try addISO14230Frame(octets)
    case 0x48 where octets.count >= 2 && octets[1] == 0x6B, 0x41 where octets.count >= 5 && octets[1] == 0x6B && octets.hasValidCRC:
      try addLegacyFrame(octets)
    case 0x40..<0x80 where octets.count <= 7:
      try begin(source: nil, length: octets.count)
      append(octets, from: 0, to: messages.count - 1)
    default: throw Unreadable("line is neither a frame nor a message")
    }
  }

  /// Pairs of hex digits, read as bytes.
  struct Octets {
    private let digits: Digits
    private let start: Int
    let count: Int

    init(_ digits: Digits, _ start: Int, _ end: Int) {
      self.digits = digits
      self.start = start
      count = (end - start) / 2
    }

    /// The bytes after the first one.
    func dropFirst() -> Octets { Octets(digits, start + 2, start + 2 * count) }

    @inline(__always) subscript(_ index: Int) -> UInt8 { digits[start + 2 * index] << 4 | digits[start + 2 * index + 1] }
  }

  // MARK: Messages

  private static let maxMessages = 32

  /// Adds a CAN frame. Its first four bits are its type: single, first, consecutive or flow control (ISO 15765-2).
  mutating func add(frame: Octets, from source: UInt32) throws(Unreadable) {
    var (frame, full) = (frame, CANFrame.maxCount)
    if let addressByte {
      // Frames for another tester are no part of the reply.
      guard frame.count >= 1, frame[0] == addressByte else { return }
      (frame, full) = (frame.dropFirst(), full - 1)
    }
    guard frame.count >= 1, frame.count <= full else { throw Unreadable("frame of wrong length") }
    let open = messages.lastIndex { $0.source == source && !$0.isComplete }
    let low = Int(frame[0] & 15)
    switch frame[0] >> 4 {
    case 0:
      // A single frame has only its data bytes, or is full. Any other length is a truncated frame, whose padding could pass for data.
      guard low >= 1, low + 1 == frame.count || (low < frame.count && frame.count == full) else {
        throw Unreadable("frame of wrong length")
      }
      guard open == nil else { throw Unreadable("incomplete message") }
      try begin(source: source, length: low)
      append(frame, from: 1, to: messages.count - 1)
    case 1:
      guard frame.count == full else { throw Unreadable("truncated first frame") }
      guard open == nil else { throw Unreadable("incomplete message") }
      let length = low << 8 | Int(frame[1])
      guard length >= full else { throw Unreadable("first frame with too small a length") }
      try begin(source: source, length: length)
      append(frame, from: 2, to: messages.count - 1)
    case 2:
      guard let open else { throw Unreadable("consecutive frame without a first frame") }
      try append(frame, from: 1, number: UInt8(low), to: open, full: full - 1)
    case 3: break
    default: throw Unreadable("unknown frame type")
    }
  }

  /// Begins a message of this length without a header.
  mutating func beginUnattributed(length: Int) throws(Unreadable) {
    guard length > 7 else { throw Unreadable("length line with too small a length") }
    if let last = messages.last(where: { $0.source == nil && $0.isMultiFrame }), !last.isComplete {
      throw Unreadable("ambiguous: several ECUs responded without headers")
    }
    try begin(source: nil, length: length)
  }

  /// Adds a numbered line to a message without a header.
  mutating func continueUnattributed(_ number: UInt8, _ octets: Octets) throws(Unreadable) {
    guard let open = messages.lastIndex(where: { $0.source == nil && !$0.isComplete }) else {
      throw Unreadable("numbered line without a length")
    }
    if messages[open].receivedBytes > 0 { return try append(octets, from: 0, number: number, to: open, full: CANFrame.maxCount - 1) }
    guard number == 0, octets.count == 6 else { throw Unreadable("first line missing") }
    append(octets, from: 0, to: open)
  }

  /// Begins a message of this length. `source` is nil if the adapter does not show it.
  mutating func begin(source: UInt32?, length: Int) throws(Unreadable) {
    guard messages.count < Self.maxMessages else { throw Unreadable("too many messages") }
    if let first = messages.first, (first.source == nil) != (source == nil) { throw Unreadable("mixed lines with and without headers") }
    messages.append(ISOTPMessage(source: source, start: payload.count, length: length))
    payload.append(contentsOf: repeatElement(0, count: length))
  }

  /// Appends a consecutive frame, which holds `full` bytes unless it is the last one, to the message at `index`. The frame must have the next
  /// number and all of its bytes.
  private mutating func append(_ octets: Octets, from first: Int, number: UInt8, to index: Int, full: Int) throws(Unreadable) {
    guard messages[index].nextNumber == number else { throw Unreadable("frames missing or out of order") }
    let count = octets.count - first
    guard count == full || count == messages[index].missingBytes else { throw Unreadable("truncated frame") }
    append(octets, from: first, to: index)
  }

  /// Appends all bytes from position `first` to the message at `index`. Bytes beyond the message's length are padding.
  mutating func append(_ octets: Octets, from first: Int, to index: Int) {
    let count = min(octets.count - first, messages[index].missingBytes)
    let end = messages[index].start + messages[index].receivedBytes
    payload.withUnsafeMutableBufferPointer { payload in
      for offset in 0..<count { payload[end + offset] = octets[first + offset] }
    }
    messages[index].recordFrame(count)
  }
}
