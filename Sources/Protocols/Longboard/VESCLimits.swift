// The limits of a VESC that hold until it is switched off: read, made narrower for a speed mode, and compared.
// Facts: COMM_GET_MCCONF_TEMP and COMM_SET_MCCONF_TEMP in vedderb/bldc comm/commands.c.

/// Ten limits, in the order in which they travel.
struct VESCLimits: Sendable, Equatable {
  static let count = 10
  private static let drive = 1
  private static let minimumERPM = 2
  private static let maximumERPM = 3

  /// Scales of braking and driving motor current (0...1); least and greatest ERPM, duty (0...1), W and battery current A.
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

  /// What SET_MCCONF_TEMP says: not to keep them over a restart, whether to pass them on to the VESCs on the bus, to
  /// acknowledge, not to divide them.
  func command(passedOn: Bool) -> [UInt8] { [0, passedOn ? 1 : 0, 1, 0] + bytes }

  /// These limits, narrowed for a mode; never wider. The braking current stays: no mode makes the brakes weaker.
  func narrowed(current: Double, erpm: Double?) -> VESCLimits {
    var narrow = self
    narrow.numbers[Self.drive] *= Float(current)
    if let erpm {
      narrow.numbers[Self.minimumERPM] = max(numbers[Self.minimumERPM], Float(-erpm))
      narrow.numbers[Self.maximumERPM] = min(numbers[Self.maximumERPM], Float(erpm))
    }
    return narrow
  }

  /// The same but for rounding.
  func isClose(to other: VESCLimits) -> Bool {
    zip(numbers, other.numbers).allSatisfy { abs($0 - $1) <= max(abs($0), abs($1)) * 0.001 + 0.0001 }
  }

  /// Whether driving current and speed are no more than the other's: hardware may allow less than was asked for.
  func isWithin(_ other: VESCLimits) -> Bool {
    func atMost(_ index: Int, _ sign: Float) -> Bool {
      numbers[index] * sign <= other.numbers[index] * sign + abs(other.numbers[index]) * 0.001 + 0.0001
    }
    return atMost(Self.drive, 1) && atMost(Self.maximumERPM, 1) && atMost(Self.minimumERPM, -1)
  }
}

/// The reply to GET_MCCONF_TEMP: the limits, and what the VESC knows of its board.
struct VESCBoard: Sendable, Equatable {
  var limits: VESCLimits
  var geometry: VESCGeometry

  /// Reads the reply behind its id.
  init?(_ payload: ArraySlice<UInt8>) {
    var cursor = VESCCursor(payload)
    guard let limits = VESCLimits(&cursor), let poles = cursor.byte(), let gearing = cursor.float(), let wheel = cursor.float() else {
      return nil
    }
    self.limits = limits
    geometry = VESCGeometry(polePairs: Double(poles) / 2, gearRatio: Double(gearing), wheel: Double(wheel))
  }
}

/// What the disk knows of a VESC's limits: its own, and those that a mode gave it.
struct VESCLimitsMemory: Sendable, Equatable {
  /// As they were before the first mode.
  var own: VESCLimits
  /// As they were set last.
  var applied: VESCLimits

  init(own: VESCLimits, applied: VESCLimits) { (self.own, self.applied) = (own, applied) }

  init?(stored: [UInt8]) {
    // Damaged, it would be written to the VESC.
    let sum = VESCCheckSum.of(stored.dropLast(2))
    guard stored.suffix(2) == [UInt8(truncatingIfNeeded: sum >> 8), UInt8(truncatingIfNeeded: sum)] else { return nil }
    var cursor = VESCCursor(stored.dropLast(2))
    guard let own = VESCLimits(&cursor), let applied = VESCLimits(&cursor), cursor.rest.isEmpty else { return nil }
    self.init(own: own, applied: applied)
  }

  /// Both, and a check sum.
  var stored: [UInt8] {
    let bytes = own.bytes + applied.bytes
    let sum = VESCCheckSum.of(bytes[...])
    return bytes + [UInt8(truncatingIfNeeded: sum >> 8), UInt8(truncatingIfNeeded: sum)]
  }
}
