// Reads, reduces and compares the temporary limits of a VESC, which apply until it is switched off.
// Source: COMM_GET_MCCONF_TEMP and COMM_SET_MCCONF_TEMP in vedderb/bldc comm/commands.c.

/// Ten limits, in wire order.
struct VESCLimits: Sendable, Equatable {
  static let count = 10
  private static let drivingCurrent = 1
  private static let minimumERPM = 2
  private static let maximumERPM = 3

  /// Factors of the braking and the driving motor current (0...1), then a minimum and a maximum each of ERPM, duty cycle (0...1), power in
  /// W, and battery current in A.
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

  /// The arguments of SET_MCCONF_TEMP. Its four flags: store (no), forward to VESCs on the CAN bus, acknowledge (yes), divide by the
  /// number of VESCs (no).
  func command(isForwarded: Bool) -> [UInt8] { [0, isForwarded ? 1 : 0, 1, 0] + bytes }

  /// These limits, reduced for a mode: the driving current by a factor of 0 to 1, the speed to a maximum ERPM. No limit is increased. The
  /// braking current is unchanged, so that no mode weakens the brakes.
  func reduced(current: Double, erpm: Double?) -> VESCLimits {
    var reduced = self
    reduced.numbers[Self.drivingCurrent] *= Float(current)
    if let erpm {
      reduced.numbers[Self.minimumERPM] = max(numbers[Self.minimumERPM], Float(-erpm))
      reduced.numbers[Self.maximumERPM] = min(numbers[Self.maximumERPM], Float(erpm))
    }
    return reduced
  }

  /// Equality except for rounding.
  func isClose(to other: VESCLimits) -> Bool {
    zip(numbers, other.numbers).allSatisfy { abs($0 - $1) <= max(abs($0), abs($1)) * 0.001 + 0.0001 }
  }

  /// Whether driving current and speed are at most those of other limits: the hardware may allow less than requested.
  func isWithin(_ other: VESCLimits) -> Bool {
    func atMost(_ index: Int, _ sign: Float) -> Bool {
      numbers[index] * sign <= other.numbers[index] * sign + abs(other.numbers[index]) * 0.001 + 0.0001
    }
    return atMost(Self.drivingCurrent, 1) && atMost(Self.maximumERPM, 1) && atMost(Self.minimumERPM, -1)
  }
}

/// The response to GET_MCCONF_TEMP: the limits, and the board's drivetrain.
struct VESCBoard: Sendable, Equatable {
  let limits: VESCLimits
  let drivetrain: VESCDrivetrain

  /// Parses the response after its ID.
  init?(_ payload: ArraySlice<UInt8>) {
    var cursor = VESCCursor(payload)
    guard let limits = VESCLimits(&cursor), let poles = cursor.byte(), let gearing = cursor.float(), let wheel = cursor.float() else {
      return nil
    }
    self.limits = limits
    drivetrain = VESCDrivetrain(polePairs: Double(poles) / 2, gearRatio: Double(gearing), wheelDiameter: Double(wheel))
  }
}

/// The stored limits of a VESC: its own, and those that a mode has set.
struct VESCStoredLimits: Sendable, Equatable {
  /// The VESC's own limits, before the first mode.
  let own: VESCLimits
  /// The limits that were set last.
  let applied: VESCLimits

  init(own: VESCLimits, applied: VESCLimits) { (self.own, self.applied) = (own, applied) }

  init?(stored: [UInt8]) {
    // The checksum prevents damaged limits from being written to the VESC.
    let sum = VESCChecksum.of(stored.dropLast(2))
    guard stored.suffix(2) == [UInt8(truncatingIfNeeded: sum >> 8), UInt8(truncatingIfNeeded: sum)] else { return nil }
    var cursor = VESCCursor(stored.dropLast(2))
    guard let own = VESCLimits(&cursor), let applied = VESCLimits(&cursor), cursor.rest.isEmpty else { return nil }
    self.init(own: own, applied: applied)
  }

  /// Both sets of limits, and a checksum.
  var stored: [UInt8] {
    let bytes = own.bytes + applied.bytes
    let sum = VESCChecksum.of(bytes[...])
    return bytes + [UInt8(truncatingIfNeeded: sum >> 8), UInt8(truncatingIfNeeded: sum)]
  }
}
