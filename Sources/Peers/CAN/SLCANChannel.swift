// The channel of simulated slcan adapters: the lines of the host, and the commands that open and close the channel.
// Source: Lawicel CAN232 manual.

import Protocols

struct SLCANChannel: Sendable {
  enum State: Sendable { case closed, open, listening }

  static let accepted: [UInt8] = [carriageReturn]
  static let rejected: [UInt8] = [7]
  private static let maxLineLength = 64

  private(set) var state = State.closed
  /// The bit rate that was set, as the digit of the command; nil until then.
  private(set) var bitRate: UInt8?
  private var line: [UInt8] = []

  var isOpen: Bool { state != .closed }

  /// Handles a new connection of the host. The bit rate stays set.
  mutating func reset() { (state, line) = (.closed, []) }

  /// Handles a byte of the host, and returns the line that it completes.
  mutating func receive(_ byte: UInt8) -> [UInt8]? {
    guard byte == carriageReturn else {
      if line.count < Self.maxLineLength { line.append(byte) }
      return nil
    }
    defer { line.removeAll(keepingCapacity: true) }
    return line
  }

  /// Runs a command other than those for frames. `version` is what the adapter reports, `status` the flags of its status.
  mutating func run(_ line: [UInt8], version: String, status: SLCANStatus) -> [UInt8] {
    switch line.first {
    case nil: return Self.accepted
    case UInt8(ascii: "C"):
      defer { state = .closed }
      return isOpen ? Self.accepted : Self.rejected
    case UInt8(ascii: "S"):
      guard !isOpen, line.count == 2, (0x30...0x38).contains(line[1]) else { return Self.rejected }
      bitRate = line[1]
      return Self.accepted
    case UInt8(ascii: "O"), UInt8(ascii: "L"):
      guard !isOpen else { return Self.rejected }
      state = line.first == UInt8(ascii: "L") ? .listening : .open
      return Self.accepted
    case UInt8(ascii: "V"): return Array("V\(version)\r".utf8)
    case UInt8(ascii: "N"): return Array("NA123\r".utf8)
    case UInt8(ascii: "F"):
      guard isOpen else { return Self.rejected }
      return [UInt8(ascii: "F"), HexDigits.digit(status.rawValue >> 4), HexDigits.digit(status.rawValue), carriageReturn]
    default: return Self.rejected
    }
  }
}
