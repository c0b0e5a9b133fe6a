// The frames of a raw CAN socket of Linux as bytes: the kernel's struct can_frame, and the classes of its error frames.
// Source: linux/can.h, linux/can/error.h.
//
//   4 bytes: identifier, and flags in its upper bits (29 bit, remote, error), in the byte order of the machine · 1: number of bytes ·
//   3: unused · 8: bytes

package enum SocketCAN {
  /// The length of a frame.
  package static let frameLength = 16
  private static let (extended, remote, error): (UInt32, UInt32, UInt32) = (0x8000_0000, 0x4000_0000, 0x2000_0000)

  /// The bytes of a frame to send.
  package static func bytes(of frame: CANFrame) -> [UInt8] {
    var word = frame.identifier.number
    switch frame.kind {
    case .data: if frame.identifier.is29Bit { word |= extended }
    case .remote: word |= remote | (frame.identifier.is29Bit ? extended : 0)
    case .error: word |= error
    }
    var bytes = withUnsafeBytes(of: word) { Array($0) }
    bytes += [UInt8(frame.count), 0, 0, 0]
    bytes += frame.bytes
    bytes += Array(repeating: 0, count: frameLength - bytes.count)
    return bytes
  }

  /// A filter as the kernel's struct can_filter: identifier and mask. Only data frames with identifiers of this length match.
  package static func words(of filter: CANFilter) -> [UInt32] {
    [filter.identifier.number | (filter.identifier.is29Bit ? extended : 0), filter.mask | extended | remote]
  }

  /// Whether the frame at this position is an error frame.
  @inline(__always) package static func isError(_ bytes: [UInt8], at position: Int) -> Bool { word(bytes, at: position) & error != 0 }

  @inline(__always) private static func word(_ bytes: [UInt8], at position: Int) -> UInt32 {
    bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: position, as: UInt32.self) }
  }

  /// Passes on the frames in received bytes, which hold whole frames.
  package static func decode(_ bytes: [UInt8], _ handle: (CANFrame) -> Void) {
    for start in stride(from: 0, through: bytes.count - frameLength, by: frameLength) {
      let word = word(bytes, at: start)
      let count = Int(bytes[start + 4])
      guard count <= CANFrame.maxCount else { continue }
      let first = start + 8
      let data = bytes[first..<first + count]
      if word & error != 0 {
        handle(CANFrame(CANIdentifier(number: word & 0x1FFF_FFFF, is29Bit: true), .error, data))
        continue
      }
      let is29Bit = word & extended != 0
      let identifier = CANIdentifier(number: word & (is29Bit ? 0x1FFF_FFFF : 0x7FF), is29Bit: is29Bit)
      if word & remote != 0 {
        handle(CANFrame(identifier, .remote, remoteCount: count))
      } else {
        handle(CANFrame(identifier, data))
      }
    }
  }
}

/// What an error frame reports.
package struct CANErrorClasses: OptionSet, Hashable, Sendable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  package static let lostArbitration = CANErrorClasses(rawValue: 0x02)
  package static let controller = CANErrorClasses(rawValue: 0x04)
  package static let protocolViolation = CANErrorClasses(rawValue: 0x08)
  package static let noAcknowledgement = CANErrorClasses(rawValue: 0x20)
  package static let busOff = CANErrorClasses(rawValue: 0x40)
  package static let busError = CANErrorClasses(rawValue: 0x80)
  /// The interface works again after it was bus-off.
  package static let restarted = CANErrorClasses(rawValue: 0x100)
}

extension CANFrame {
  /// The classes of an error frame; empty for any other frame.
  package var errorClasses: CANErrorClasses { kind == .error ? CANErrorClasses(rawValue: identifier.number) : [] }

  /// The state of the interface that an error frame reports, with the flags that an adapter has for it.
  package var errorStatus: SLCANStatus {
    var status: SLCANStatus = []
    let classes = errorClasses
    if classes.contains(.noAcknowledgement) { status.insert(.errorPassive) }
    if !classes.isDisjoint(with: [.protocolViolation, .busError]) { status.insert(.busError) }
    guard classes.contains(.controller), count > 1 else { return status }
    // Receive overflow; receiving or sending has reached the state error-passive.
    if self[1] & 0x01 != 0 { status.insert(.dataOverrun) }
    if self[1] & 0x30 != 0 { status.insert(.errorPassive) }
    return status
  }
}
