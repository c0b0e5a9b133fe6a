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
  private(set) var receivedBytes = 0
  /// The number of the next consecutive frame: 1 to 15, then 0.
  private(set) var nextNumber: UInt8 = 1

  /// A message of this length whose bytes begin at `start`.
  init(source: UInt32?, start: Int, length: Int) {
    self.source = source
    self.start = start
    self.length = length
  }

  var missingBytes: Int { length - receivedBytes }
  var isComplete: Bool { receivedBytes == length }
  var isMultiFrame: Bool { length > 7 }

  /// The number of frames of a message. `capacity`: the bytes that a single or consecutive frame holds, 7 without an address byte; a first
  /// frame holds one less, so there are 1 + ceil((length - capacity + 1) / capacity).
  static func frames(for length: Int, capacity: Int) -> Int { length <= capacity ? 1 : 1 + length / capacity }

  /// Records a frame with this many bytes of the message.
  mutating func recordFrame(_ count: Int) {
    if receivedBytes > 0 { nextNumber = (nextNumber + 1) & 15 }
    receivedBytes += count
  }
}

/// The reason why a reply is unusable.
struct Unreadable: Error {
  let reason: String

  init(_ reason: String) {
    self.reason = reason
  }
}
