// Which firmware a simulated VESC runs: how long its answers are and which questions it knows.
// Facts: comm/commands.c of vedderb/bldc at these tags. With which version between 3.33 and 3.48 the setup values and the
// selections came is not certain: a host has to find out by asking.

/// A version of the firmware.
public enum VESCModel: String, CaseIterable, Sendable {
  case v218 = "2.18"
  case v333 = "3.33"
  case v334 = "3.34"
  case v340 = "3.40"
  case v348 = "3.48"
  case v360 = "3.60"
  case v502 = "5.02"
  case v600 = "6.00"

  /// Position among the versions, the oldest first.
  private var age: Int { VESCModel.allCases.firstIndex(of: self) ?? 0 }

  func isAtLeast(_ other: VESCModel) -> Bool { age >= other.age }

  var version: [UInt8] { rawValue.split(separator: ".").compactMap { UInt8($0) } }
  var knowsSetup: Bool { isAtLeast(.v340) }
  var knowsSelection: Bool { isAtLeast(.v348) }
  /// Reading limits; setting them came with the setup values.
  var knowsLimits: Bool { isAtLeast(.v502) }
  var knowsPing: Bool { isAtLeast(.v340) }
}
