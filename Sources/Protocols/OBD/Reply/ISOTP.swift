// A message assembled from frames (ISO 15765-2). Frames out of order are rejected; bytes beyond the announced length are padding.
// Messages of several ECUs are assembled in parallel if headers are shown, and are ambiguous otherwise.

/// A message of one ECU. Its bytes are in the reader.
struct ISOTPMessage: Equatable, Sendable {
  /// The CAN identifier or K-line address of the sender, if the adapter shows it.
  let source: UInt32?
  /// The index of the first byte in the payload of the reader.
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

  /// Records that the next frame has filled this many bytes.
  mutating func recordFrame(_ count: Int) {
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
