// The identification of a VESC. Source: COMM_FW_VERSION in vedderb/bldc comm/commands.c; very old firmware sends only the version.

struct VESCFirmware: Sendable, Equatable {
  let major: UInt8
  let minor: UInt8
  /// The hardware name; nil for very old firmware.
  let hardware: String?

  /// Parses the response after its ID.
  init?(_ payload: ArraySlice<UInt8>) {
    var cursor = VESCCursor(payload)
    guard let major = cursor.byte(), let minor = cursor.byte() else { return nil }
    (self.major, self.minor) = (major, minor)
    let name = cursor.text(limit: 32)
    hardware = name.isEmpty ? nil : name
  }

  /// The version as VESC Tool shows it: `5.02`.
  var version: String { "\(major).\(minor < 10 ? "0" : "")\(minor)" }
}
