// The text protocol of CAN adapters on a serial line or a TCP connection (slcan). Source: Lawicel CAN232 and CANUSB manuals; the adapters
// CANable, USBtin and WiCAN. Every command ends with CR. The adapter replies CR (accepted) or BEL (rejected), and `z` or `Z` after a frame
// was queued for sending. Received frames are lines of the same form as sent ones.
//
//   t7DF80201000000000000   11-bit identifier, length, bytes      T18DB33F18…   29-bit identifier      r, R   remote frames, without bytes
//   C close · S6 bit rate · O open · L open for listening only · F status · V version · N serial number · Z1 time stamps after frames

/// Commands and frames as text.
package enum SLCAN {
  package static let close = Array("C\r".utf8)
  package static let open = Array("O\r".utf8)
  /// Opens the channel without acknowledging or sending frames.
  package static let listen = Array("L\r".utf8)
  package static let status = Array("F\r".utf8)
  package static let version = Array("V\r".utf8)

  /// The bit rates in bit/s; the index is the digit of the command `S`.
  package static let bitRates = [10_000, 20_000, 50_000, 100_000, 125_000, 250_000, 500_000, 800_000, 1_000_000]

  /// The command that sets the bit rate, before the channel is opened; nil if the protocol has no number for this rate.
  package static func setBitRate(_ bitRate: Int) -> [UInt8]? {
    bitRates.firstIndex(of: bitRate).map { Array("S\($0)\r".utf8) }
  }

  /// The line for a frame, with its CR; empty for an error frame, which cannot be sent.
  package static func text(of frame: CANFrame) -> [UInt8] {
    var text: [UInt8] = []
    append(frame, to: &text)
    return text
  }

  /// Appends the line for a frame, with its CR. Appends nothing for an error frame.
  package static func append(_ frame: CANFrame, to text: inout [UInt8]) {
    guard frame.kind != .error else { return }
    let isRemote = frame.kind == .remote
    let identifier = frame.identifier
    text.append(
      identifier.is29Bit ? UInt8(ascii: isRemote ? "R" : "T") : UInt8(ascii: isRemote ? "r" : "t"))
    let digits = identifier.is29Bit ? 8 : 3
    for shift in stride(from: 4 * (digits - 1), through: 0, by: -4) {
      text.append(hexDigits[Int(identifier.number >> shift) & 15])
    }
    text.append(hexDigits[frame.count])
    if !isRemote {
      for index in 0..<frame.count {
        text.append(hexDigits[Int(frame[index] >> 4)])
        text.append(hexDigits[Int(frame[index] & 15)])
      }
    }
    text.append(carriageReturn)
  }
}

/// The flags in the reply to the command `F`: register of a SJA1000 controller.
package struct SLCANStatus: OptionSet, Hashable, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let receiveQueueFull = SLCANStatus(rawValue: 0x01)
  package static let sendQueueFull = SLCANStatus(rawValue: 0x02)
  package static let errorWarning = SLCANStatus(rawValue: 0x04)
  package static let dataOverrun = SLCANStatus(rawValue: 0x08)
  package static let errorPassive = SLCANStatus(rawValue: 0x20)
  package static let arbitrationLost = SLCANStatus(rawValue: 0x40)
  package static let busError = SLCANStatus(rawValue: 0x80)
}

/// Splits received bytes into what the adapter says. Damaged lines are dropped and counted; a line has at most 64 bytes.
package struct SLCANDecoder: Sendable {
  /// One thing that the adapter says.
  package enum Item: Equatable, Sendable {
    case frame(CANFrame)
    case accepted
    case rejected
    /// A frame was queued for sending.
    case queued
    case status(SLCANStatus)
    /// The version or the serial number, with its letter.
    case identity([UInt8])
    /// A line that is damaged, or of another protocol.
    case unknown([UInt8])
  }

  private static let maxLine = 64
  private static let bell: UInt8 = 7

  private var line: [UInt8] = []
  /// Whether the current line is too long, so that the rest of it is dropped.
  private var isTooLong = false
  /// The number of damaged lines.
  package private(set) var damagedLines = 0

  package init() { line.reserveCapacity(Self.maxLine) }

  /// Processes received bytes, which can be split anywhere, and passes on each item.
  package mutating func receive(_ bytes: some Sequence<UInt8>, _ handle: (Item) -> Void) {
    for byte in bytes {
      switch byte {
      case carriageReturn:
        let item = isTooLong ? .unknown([]) : item() ?? .unknown(line)
        if case .unknown = item { damagedLines &+= 1 }
        handle(item)
        endLine()
      case Self.bell:
        // A rejection has no CR. What precedes it is no complete line.
        if isTooLong || !line.isEmpty { damagedLines &+= 1 }
        endLine()
        handle(.rejected)
      case lineFeed, 0: break
      case _ where line.count >= Self.maxLine: isTooLong = true
      default: line.append(byte)
      }
    }
  }

  private mutating func endLine() {
    line.removeAll(keepingCapacity: true)
    isTooLong = false
  }

  /// The meaning of the complete line; nil if it is damaged.
  private func item() -> Item? {
    guard let first = line.first else { return .accepted }
    switch first {
    case UInt8(ascii: "t"): return frame(digits: 3, .data)
    case UInt8(ascii: "T"): return frame(digits: 8, .data)
    case UInt8(ascii: "r"): return frame(digits: 3, .remote)
    case UInt8(ascii: "R"): return frame(digits: 8, .remote)
    case UInt8(ascii: "z"), UInt8(ascii: "Z"): return line.count == 1 ? .queued : nil
    case UInt8(ascii: "F"):
      guard line.count == 3, let flags = byte(at: 1) else { return nil }
      return .status(SLCANStatus(rawValue: flags))
    case UInt8(ascii: "V"), UInt8(ascii: "v"), UInt8(ascii: "N"):
      // A letter alone is the echo of a command.
      return line.count > 1 && line.allSatisfy { $0 >= space && $0 < 0x7F } ? .identity(line) : nil
    default: return nil
    }
  }

  /// A frame whose identifier has this many digits. Time stamps of four or eight digits may follow it.
  private func frame(digits: Int, _ kind: CANFrame.Kind) -> Item? {
    guard line.count > 1 + digits else { return nil }
    var number: UInt32 = 0
    for index in 1...digits {
      let value = hexValue(line[index])
      guard value < 16 else { return nil }
      number = number << 4 | UInt32(value)
    }
    guard number <= (digits == 8 ? 0x1FFF_FFFF : 0x7FF) else { return nil }
    let identifier = CANIdentifier(number: number, is29Bit: digits == 8)
    let count = Int(hexValue(line[1 + digits]))
    guard count <= CANFrame.maxCount else { return nil }
    let start = 2 + digits
    let end = kind == .remote ? start : start + 2 * count
    guard [end, end + 4, end + 8].contains(line.count) else { return nil }
    if kind == .remote { return .frame(CANFrame(identifier, .remote, remoteCount: count)) }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: CANFrame.maxCount) { bytes -> Item? in
      for index in 0..<count {
        guard let byte = byte(at: start + 2 * index) else { return nil }
        bytes[index] = byte
      }
      return .frame(CANFrame(identifier, UnsafeBufferPointer(rebasing: bytes[..<count])))
    }
  }

  /// The byte of the two hex digits at `index`; nil if they are none.
  @inline(__always) private func byte(at index: Int) -> UInt8? {
    let (high, low) = (hexValue(line[index]), hexValue(line[index + 1]))
    return high < 16 && low < 16 ? high << 4 | low : nil
  }
}
