// The limits of a VESC until it is switched off: read, reduced for a speed mode, and compared.
// Source: COMM_GET_MCCONF_TEMP and COMM_SET_MCCONF_TEMP in vedderb/bldc comm/commands.c.

/// Ten limits, in the order of the wire.
struct VESCLimits: Sendable, Equatable {
  static let count = 10
  private static let drive = 1
  private static let minimumERPM = 2
  private static let maximumERPM = 3

  /// Scales of braking and driving motor current (0...1); minimum and maximum ERPM, duty (0...1), W and battery current in A.
  private(set) var numbers: [Float]

  /// Reads ten numbers.
  init?(_ cursor: inout VESCCursor) {
    numbers = []
    numbers.reserveCapacity(Self.count)
    for _ in 0..<Self.count {
      guard let number = cursor.float() else { return nil }
      numbers.append(number)
    }
  }

  var bytes: [UInt8] { numbers.flatMap(VESCCommand.bytes) }

  /// The flags of SET_MCCONF_TEMP: do not store the limits, whether to forward them to VESCs on the CAN bus, acknowledge, do not divide
  /// them.
  func command(passedOn: Bool) -> [UInt8] { [0, passedOn ? 1 : 0, 1, 0] + bytes }

  /// The limits reduced for a mode, never increased. The braking current is unchanged, so that no mode weakens the brakes.
  func narrowed(current: Double, erpm: Double?) -> VESCLimits {
    var narrow = self
    narrow.numbers[Self.drive] *= Float(current)
    if let erpm {
      narrow.numbers[Self.minimumERPM] = max(numbers[Self.minimumERPM], Float(-erpm))
      narrow.numbers[Self.maximumERPM] = min(numbers[Self.maximumERPM], Float(erpm))
    }
    return narrow
  }

  /// Equality except for rounding.
  func isClose(to other: VESCLimits) -> Bool {
    zip(numbers, other.numbers).allSatisfy { abs($0 - $1) <= max(abs($0), abs($1)) * 0.001 + 0.0001 }
  }

  /// Whether driving current and speed are at most the other's: the hardware may allow less than requested.
  func isWithin(_ other: VESCLimits) -> Bool {
    func atMost(_ index: Int, _ sign: Float) -> Bool {
      numbers[index] * sign <= other.numbers[index] * sign + abs(other.numbers[index]) * 0.001 + 0.0001
    }
    return atMost(Self.drive, 1) && atMost(Self.maximumERPM, 1) && atMost(Self.minimumERPM, -1)
  }
}

/// The response to GET_MCCONF_TEMP: the limits, and the board's geometry.
struct VESCBoard: Sendable, Equatable {
  let limits: VESCLimits
  let geometry: VESCGeometry

  /// Parses the response after its ID.
  init?(_ payload: ArraySlice<UInt8>) {
    var cursor = VESCCursor(payload)
    guard let limits = VESCLimits(&cursor), let poles = cursor.byte(), let gearing = cursor.float(), let wheel = cursor.float() else {
      return nil
    }
    self.limits = limits
    geometry = VESCGeometry(polePairs: Double(poles) / 2, gearRatio: Double(gearing), wheel: Double(wheel))
  }
}

/// The stored limits of a VESC: its own, and those that a mode has set.
struct VESCLimitsMemory: Sendable, Equatable {
  /// Before the first mode.
  let own: VESCLimits
  /// As set last.
  let applied: VESCLimits

  init(own: VESCLimits, applied: VESCLimits) { (self.own, self.applied) = (own, applied) }

  init?(stored: [UInt8]) {
    // A damaged value would be written to the VESC.
    let sum = VESCCheckSum.of(stored.dropLast(2))
    guard stored.suffix(2) == [UInt8(truncatingIfNeeded: sum >> 8), UInt8(truncatingIfNeeded: sum)] else { return nil }
    var cursor = VESCCursor(stored.dropLast(2))
    guard let own = VESCLimits(&cursor), let applied = VESCLimits(&cursor), cursor.rest.isEmpty else { return nil }
    self.init(own: own, applied: applied)
  }

  /// Both, and a checksum.
  var stored: [UInt8] {
    let bytes = own.bytes + applied.bytes
    let sum = VESCCheckSum.of(bytes[...])
    return bytes + [UInt8(truncatingIfNeeded: sum >> 8), UInt8(truncatingIfNeeded: sum)]
  }
}
