// The frames of ISO 15765-2 (ISO-TP), which carries messages of up to 4095 bytes in frames of classical CAN. With extended and mixed
// addressing, a byte that completes the address precedes the bytes shown here, and a frame carries one byte less.
//
//   0L …          single frame: L bytes          2N …           consecutive frame number N (1 to F, then 0)
//   1L LL …       first frame: LLL bytes         3S BS ST       flow control: status S, block size, separation time

/// How frames are addressed beyond their identifier: the first byte of sent and of received frames, if they have one.
package struct ISOTPAddressing: Hashable, Sendable {
  package let sentByte: UInt8?
  package let receivedByte: UInt8?

  /// Only the identifier is the address.
  package static let normal = ISOTPAddressing(sentByte: nil, receivedByte: nil)
  /// The usual address of testers.
  package static let tester: UInt8 = 0xF1
  /// Each frame begins with the address of its receiver: `target` in requests, `tester` in responses.
  package static func extended(target: UInt8, tester: UInt8 = tester) -> ISOTPAddressing {
    ISOTPAddressing(sentByte: target, receivedByte: tester)
  }
  /// Frames of both directions begin with the same address extension.
  package static func mixed(_ addressExtension: UInt8) -> ISOTPAddressing {
    ISOTPAddressing(sentByte: addressExtension, receivedByte: addressExtension)
  }

  /// The number of bytes of a message that a received single frame can hold at most.
  package var receivedCapacity: Int { CANFrame.maxCount - 1 - receivedOffset }
  /// The number of bytes before the protocol control information in received frames.
  var receivedOffset: Int { receivedByte == nil ? 0 : 1 }
  /// The maximum number of bytes in a sent frame after the address byte.
  var sentCapacity: Int { CANFrame.maxCount - (sentByte == nil ? 0 : 1) }
}

/// Parses an address byte of two hex digits; nil for any other text.
func addressByte(_ text: some StringProtocol) -> UInt8? {
  let digits = Array(text.utf8)
  guard digits.count == 2, digits.allSatisfy(isHexDigit) else { return nil }
  return hexValue(digits[0]) << 4 | hexValue(digits[1])
}

/// The limits of ISO 15765-2.
package struct ISOTPTimeouts: Hashable, Sendable {
  /// The maximum time until the receiver permits further frames (N_Bs).
  package var flowControl: Nanoseconds
  /// The maximum time until the next consecutive frame (N_Cr).
  package var consecutiveFrame: Nanoseconds
  /// How many times in a row the receiver may ask the sender to wait.
  package var maxWaits: Int

  package init(flowControl: Nanoseconds = .second, consecutiveFrame: Nanoseconds = .second, maxWaits: Int = 16) {
    (self.flowControl, self.consecutiveFrame, self.maxWaits) = (flowControl, consecutiveFrame, maxWaits)
  }
}

/// The permission of a receiver to continue.
package struct ISOTPFlowControl: Hashable, Sendable {
  package enum Status: UInt8, Sendable {
    case proceed, wait, overflow
    /// Any of the reserved values, which end the message.
    case reserved
  }

  package var status: Status
  /// The number of consecutive frames until the next flow control; 0: all of them.
  package var blockSize: UInt8
  /// The minimum time between consecutive frames as encoded: 0 to 7F in ms, F1 to F9 in 100 µs.
  package var separation: UInt8

  package init(_ status: Status = .proceed, blockSize: UInt8 = 0, separation: UInt8 = 0) {
    (self.status, self.blockSize, self.separation) = (status, blockSize, separation)
  }

  package var separationTime: Nanoseconds {
    switch separation {
    case 0...0x7F: Nanoseconds(separation) * .millisecond
    case 0xF1...0xF9: Nanoseconds(separation - 0xF0) * 100 * .microsecond
    // Reserved values mean the longest time.
    default: 127 * .millisecond
    }
  }

  /// The frame that carries it.
  package func frame(to identifier: CANIdentifier, _ addressing: ISOTPAddressing = .normal, padding: UInt8?) -> CANFrame {
    CANFrame(isotp: 0x30 | status.rawValue, second: blockSize, [separation], to: identifier, addressing, padding: padding)
  }
}

/// The content of a frame.
package enum ISOTPContent: Equatable, Sendable {
  /// A message of `count` bytes from this position of the frame on.
  case single(start: Int, count: Int)
  /// The beginning of a message of `length` bytes, from this position on.
  case first(start: Int, length: Int)
  /// The continuation with this number, from this position on.
  case consecutive(start: Int, number: UInt8)
  case flowControl(ISOTPFlowControl)
}

extension CANFrame {
  static let maxISOTPLength = 4095

  /// A frame with one or two bytes of control information and these bytes after the address byte, filled with `padding` unless it is nil.
  init(
    isotp control: UInt8, second: UInt8? = nil, _ bytes: ArraySlice<UInt8>, to identifier: CANIdentifier, _ addressing: ISOTPAddressing,
    padding: UInt8?
  ) {
    var content = Content()
    if let byte = addressing.sentByte { content.append(byte) }
    content.append(control)
    if let second { content.append(second) }
    content.append(bytes)
    if let padding { content.fill(with: padding) }
    self.init(identifier, content)
  }

  /// The content as a frame of ISO-TP; nil if it is none, or one for another address.
  package func isotp(_ addressing: ISOTPAddressing = .normal) -> ISOTPContent? {
    let start = addressing.receivedOffset
    guard kind == .data, count > start, addressing.receivedByte.map({ $0 == self[0] }) ?? true else { return nil }
    let low = Int(self[start] & 15)
    switch self[start] >> 4 {
    case 0:
      guard low >= 1, low <= count - start - 1 else { return nil }
      return .single(start: start + 1, count: low)
    case 1:
      // A first frame is always full, and its message does not fit into a single frame.
      guard count == Self.maxCount else { return nil }
      let length = low << 8 | Int(self[start + 1])
      guard length > Self.maxCount - start - 1 else { return nil }
      return .first(start: start + 2, length: length)
    case 2: return .consecutive(start: start + 1, number: UInt8(low))
    case 3:
      guard count >= start + 3 else { return nil }
      let status = ISOTPFlowControl.Status(rawValue: UInt8(low)) ?? .reserved
      return .flowControl(ISOTPFlowControl(status, blockSize: self[start + 1], separation: self[start + 2]))
    default: return nil
    }
  }
}
