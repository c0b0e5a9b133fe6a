// Firmware versions of a simulated VESC: their commands and reply lengths.
// Source: comm/commands.c of vedderb/bldc at these tags. It is uncertain which version between 3.33 and 3.48 introduced the setup values
// and the selection of fields.

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

  /// The position among the versions, oldest first.
  private var age: Int { VESCModel.allCases.firstIndex(of: self) ?? 0 }

  func isAtLeast(_ other: VESCModel) -> Bool { age >= other.age }

  var version: [UInt8] { rawValue.split(separator: ".").compactMap { UInt8($0) } }
  var supportsSetupValues: Bool { isAtLeast(.v340) }
  var supportsSelectiveValues: Bool { isAtLeast(.v348) }
  /// Whether the limits can be read. They can be set in every version that supports the setup values.
  var supportsLimits: Bool { isAtLeast(.v502) }
  var supportsPing: Bool { isAtLeast(.v340) }
}
