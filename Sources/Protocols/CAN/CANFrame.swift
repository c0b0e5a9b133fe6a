// One frame of a classical CAN bus (ISO 11898-1), as a value without storage on the heap: a bus can carry 4000 of them per second.

/// A frame with an 11-bit or 29-bit identifier and at most eight bytes.
package struct CANFrame: Hashable, Sendable {
  /// What a frame is. An error frame is a report of the interface; its identifier holds the classes of the error (linux/can/error.h).
  package enum Kind: Hashable, Sendable { case data, remote, error }

  package let identifier: CANIdentifier
  package let kind: Kind
  /// The number of bytes, 0 to 8. A remote frame only requests this many.
  package let count: Int
  /// The bytes, the first one in the most significant position; unused ones are 0.
  package let packed: UInt64

  package static let maxCount = 8

  /// A data frame. Bytes beyond the eighth are dropped.
  package init(_ identifier: CANIdentifier, _ bytes: some Sequence<UInt8>) { self.init(identifier, .data, bytes) }

  /// A data frame with these bytes.
  init(_ identifier: CANIdentifier, _ content: Content) {
    (self.identifier, kind, count, packed) = (identifier, .data, content.count, content.packed)
  }

  /// Up to eight bytes of a data frame, without storage on the heap.
  struct Content {
    fileprivate var packed: UInt64 = 0
    fileprivate(set) var count = 0

    /// Appends a byte; one beyond the eighth is dropped.
    @inline(__always) mutating func append(_ byte: UInt8) {
      guard count < CANFrame.maxCount else { return }
      packed |= UInt64(byte) << (56 - 8 * UInt64(count))
      count += 1
    }

    @inline(__always) mutating func append(_ bytes: ArraySlice<UInt8>) {
      for byte in bytes { append(byte) }
    }

    /// Fills all eight bytes.
    mutating func fill(with byte: UInt8) {
      while count < CANFrame.maxCount { append(byte) }
    }
  }

  /// A frame of any kind. A remote frame has no bytes: `remoteCount` is the number that it requests.
  package init(_ identifier: CANIdentifier, _ kind: Kind, _ bytes: some Sequence<UInt8> = [], remoteCount: Int = 0) {
    var content = Content()
    if kind == .remote {
      content.count = min(max(remoteCount, 0), Self.maxCount)
    } else {
      for byte in bytes { content.append(byte) }
    }
    (self.identifier, self.kind, count, packed) = (identifier, kind, content.count, content.packed)
  }

  /// The byte at this position, 0 to `count` - 1.
  @inline(__always) package subscript(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: packed >> (56 - 8 * UInt64(index))) }

  /// The bytes; none for a remote frame.
  package var bytes: [UInt8] { kind == .remote ? [] : (0..<count).map { self[$0] } }

  /// The maximum number of bits that the frame occupies on the bus: with stuff bits and the intermission before the next frame.
  package var maxBits: Int {
    let payload = kind == .remote ? 0 : 8 * count
    let (fixed, stuffed) = identifier.is29Bit ? (67, 54) : (47, 34)
    return fixed + payload + (stuffed + payload - 1) / 4
  }
}
