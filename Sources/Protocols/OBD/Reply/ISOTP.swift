// Assembles frames into messages (ISO 15765-2). No frame is taken out of order and no more bytes than announced: the rest is padding.
// Messages of several ECUs are assembled in parallel if headers are shown, and are ambiguous otherwise.

/// A message of one ECU. Its bytes are in the reader.
struct ISOTPMessage: Equatable, Sendable {
  /// The CAN identifier or K-line address of the sender, if the adapter shows it.
  let source: UInt32?
  let start: Int
  /// The announced length in bytes.
  let length: Int
  private(set) var filled = 0
  /// The number of the next frame: 1 to 15, then 0.
  private(set) var next: UInt8 = 1

  /// A message of this length whose bytes begin at `start`.
  init(source: UInt32?, start: Int, length: Int) {
    self.source = source
    self.start = start
    self.length = length
  }

  var missing: Int { length - filled }
  var isComplete: Bool { filled == length }
  var isMultiFrame: Bool { length > 7 }

  /// The number of frames of a message: one, or six bytes in the first and seven in each further one, 1 + ceil((length - 6) / 7).
  static func frames(for length: Int) -> Int { length <= 7 ? 1 : 1 + length / 7 }

  /// Counts the bytes of the next frame.
  mutating func took(_ count: Int) {
    if filled > 0 { next = (next + 1) & 15 }
    filled += count
  }
}

/// The reason why a reply is unusable.
struct Unreadable: Error {
  let reason: String

  init(_ reason: String) {
    self.reason = reason
  }
}

extension CANReader {
  private static let messageLimit = 32

  /// One CAN frame: the first four bits give its type: single, first, consecutive or flow control (ISO 15765-2).
  mutating func take(frame: Octets, from source: UInt32) throws(Unreadable) {
    guard frame.count >= 1, frame.count <= 8 else { throw Unreadable("frame of wrong length") }
    let open = messages.lastIndex { $0.source == source && !$0.isComplete }
    let low = Int(frame[0] & 15)
    switch frame[0] >> 4 {
    case 0:
      // A frame is as long as its data or full: a truncated one would take padding for data.
      guard low >= 1, low + 1 == frame.count || (low < frame.count && frame.count == 8) else {
        throw Unreadable("frame of wrong length")
      }
      guard open == nil else { throw Unreadable("incomplete message") }
      try begin(source: source, length: low)
      append(frame, from: 1, to: messages.count - 1)
    case 1:
      guard frame.count == 8 else { throw Unreadable("truncated first frame") }
      guard open == nil else { throw Unreadable("incomplete message") }
      let length = low << 8 | Int(frame[1])
      guard length > 7 else { throw Unreadable("first frame with too small a length") }
      try begin(source: source, length: length)
      append(frame, from: 2, to: messages.count - 1)
    case 2:
      guard let open else { throw Unreadable("consecutive frame without a first frame") }
      try append(frame, from: 1, number: UInt8(low), to: open)
    case 3: break
    default: throw Unreadable("unknown frame type")
    }
  }

  mutating func beginUnattributed(length: Int) throws(Unreadable) {
    guard length > 7 else { throw Unreadable("length line with too small a length") }
    if let last = messages.last(where: { $0.source == nil && $0.isMultiFrame }), !last.isComplete {
      throw Unreadable("ambiguous: several ECUs responded without headers")
    }
    try begin(source: nil, length: length)
  }

  mutating func continueUnattributed(_ number: UInt8, _ octets: Octets) throws(Unreadable) {
    guard let open = messages.lastIndex(where: { $0.source == nil && !$0.isComplete }) else {
      throw Unreadable("numbered line without a length")
    }
    if messages[open].filled > 0 { return try append(octets, from: 0, number: number, to: open) }
    guard number == 0, octets.count == 6 else { throw Unreadable("first line missing") }
    append(octets, from: 0, to: open)
  }

  mutating func begin(source: UInt32?, length: Int) throws(Unreadable) {
    guard messages.count < Self.messageLimit else { throw Unreadable("too many messages") }
    if let first = messages.first, (first.source == nil) != (source == nil) { throw Unreadable("mixed lines with and without headers") }
    messages.append(ISOTPMessage(source: source, start: payload.count, length: length))
    payload.append(contentsOf: repeatElement(0, count: length))
  }

  /// A consecutive frame: the next number, and all of its bytes.
  private mutating func append(_ octets: Octets, from first: Int, number: UInt8, to index: Int) throws(Unreadable) {
    guard messages[index].next == number else { throw Unreadable("frames missing or out of order") }
    let count = octets.count - first
    guard count == 7 || count == messages[index].missing else { throw Unreadable("truncated frame") }
    append(octets, from: first, to: index)
  }

  /// Copies the missing bytes; the rest of the frame is padding.
  mutating func append(_ octets: Octets, from first: Int, to index: Int) {
    let count = min(octets.count - first, messages[index].missing)
    let place = messages[index].start + messages[index].filled
    payload.withUnsafeMutableBufferPointer { payload in
      for offset in 0..<count { payload[place + offset] = octets[first + offset] }
    }
    messages[index].took(count)
  }
}
