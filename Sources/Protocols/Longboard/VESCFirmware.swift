// What a VESC says it is. Facts: COMM_FW_VERSION in vedderb/bldc comm/commands.c; very old firmware says only the version.

struct VESCFirmware: Sendable, Equatable {
  var major: UInt8
  var minor: UInt8
  /// The board it was built for, where it says so.
  var hardware: String?

  /// Reads the reply behind its id.
  init?(_ payload: ArraySlice<UInt8>) {
    var cursor = VESCCursor(payload)
    guard let major = cursor.byte(), let minor = cursor.byte() else { return nil }
    (self.major, self.minor) = (major, minor)
    let name = cursor.text(limit: 32)
    hardware = name.isEmpty ? nil : name
  }

  /// As VESC Tool writes it: `5.02`.
  var version: String { "\(major).\(minor < 10 ? "0" : "")\(minor)" }
}
