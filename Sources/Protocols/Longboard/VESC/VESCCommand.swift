// The commands to a VESC and their payloads. Numbers are big-endian.
// Source: vedderb/bldc datatypes.h (COMM_PACKET_ID), comm/commands.c, util/buffer.c.

/// The first byte of a payload.
enum VESCCommand: UInt8, Sendable {
  case firmware = 0
  case values = 4
  case setDuty = 5
  case setCurrent = 6
  case setBrake = 7
  case setHandbrake = 10
  case alive = 30
  case forwardCAN = 34
  case setupValues = 47
  case setLimits = 48
  case selectedValues = 50
  case selectedSetupValues = 51
  case pingCAN = 62
  case limits = 91

  /// Returns the frame of this command with its contents. `canID` is the ID of a VESC on the CAN bus behind the link, or nil for the VESC
  /// on the link itself.
  func frame(_ contents: [UInt8] = [], canID: UInt8? = nil) -> [UInt8] {
    VESCFrame.enclosing((canID.map { [VESCCommand.forwardCAN.rawValue, $0] } ?? []) + [rawValue] + contents)
  }

  /// A number in four bytes.
  static func bytes(_ number: Int32) -> [UInt8] { bytes(UInt32(bitPattern: number)) }

  static func bytes(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  /// A number in the firmware's auto-scaled format: IEEE 754, with tiny numbers sent as 0.
  static func bytes(_ number: Float) -> [UInt8] { bytes(number.magnitude < 1.5e-38 ? 0 : number.bitPattern) }
}

/// A command to the motor.
enum VESCSetPoint: Sendable, Equatable {
  /// Motor current in mA; negative drives backwards, or brakes while rolling forwards.
  case current(Int32)
  /// Braking current in mA.
  case brake(Int32)
  /// Duty cycle in hundred-thousandths of the battery voltage; negative drives backwards.
  case duty(Int32)
  /// Handbrake current in mA.
  case handbrake(Int32)

  static let none = VESCSetPoint.current(0)

  /// Converts a value of a property, in the unit of the property; nil if it cannot be sent.
  init?(_ property: VESCProperty, _ number: Double) {
    guard number.isFinite, let scaled = Int32(exactly: (number * 1000).rounded()) else { return nil }
    switch property {
    case .targetCurrent: self = .current(scaled)
    case .brakeCurrent: self = .brake(scaled)
    case .targetDuty: self = .duty(scaled)
    case .handbrakeCurrent: self = .handbrake(scaled)
    default: return nil
    }
  }

  /// The property, and the number in its unit.
  var target: (VESCProperty, Double) {
    switch self {
    case .current(let number): (.targetCurrent, Double(number) / 1000)
    case .brake(let number): (.brakeCurrent, Double(number) / 1000)
    case .duty(let number): (.targetDuty, Double(number) / 1000)
    case .handbrake(let number): (.handbrakeCurrent, Double(number) / 1000)
    }
  }

  func frame(canID: UInt8?) -> [UInt8] {
    switch self {
    case .current(let number): VESCCommand.setCurrent.frame(VESCCommand.bytes(number), canID: canID)
    case .brake(let number): VESCCommand.setBrake.frame(VESCCommand.bytes(number), canID: canID)
    case .duty(let number): VESCCommand.setDuty.frame(VESCCommand.bytes(number), canID: canID)
    case .handbrake(let number): VESCCommand.setHandbrake.frame(VESCCommand.bytes(number), canID: canID)
    }
  }
}

/// Reads the fields of a payload in order. A method returns nil if the rest of the payload is too short.
struct VESCCursor {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  mutating func byte() -> UInt8? { rest.popFirst() }

  /// Reads a number of 1, 2 or 4 bytes: unsigned for 1 byte, two's complement for 2 or 4 bytes.
  mutating func number(_ width: Int) -> Int? {
    guard rest.count >= width else { return nil }
    var bits: UInt32 = 0
    for byte in rest.prefix(width) { bits = bits << 8 | UInt32(byte) }
    rest = rest.dropFirst(width)
    switch width {
    case 1: return Int(bits)
    case 2: return Int(Int16(truncatingIfNeeded: bits))
    default: return Int(Int32(bitPattern: bits))
    }
  }

  /// Reads a bit mask of 4 bytes.
  mutating func mask() -> UInt32? { number(4).map { UInt32(truncatingIfNeeded: $0) } }

  /// Reads a floating-point number; nil if it is not finite.
  mutating func float() -> Float? {
    guard let bits = mask() else { return nil }
    let number = Float(bitPattern: bits)
    return number.isFinite ? number : nil
  }

  /// Reads a zero-terminated string, and removes unprintable characters.
  mutating func text(limit: Int) -> String {
    let bytes = rest.prefix { $0 != 0 }
    rest = rest.dropFirst(bytes.count + 1)
    return String(decoding: bytes.filter { (0x20..<0x7F).contains($0) }.prefix(limit), as: UTF8.self)
  }
}
