// The readiness monitors of PIDs 01 and 41 (SAE J1979): which monitors are supported, and which are complete. Bit 3 of byte B shows whether
// bytes C and D describe the monitors of spark or of compression ignition.

/// The period to which a readiness monitor's state applies: the values of column `test` of the reply to action `monitors`.
public enum ReadinessPeriod {
  public static let sinceClearing = "since clearing"
  public static let thisDrivingCycle = "this driving cycle"
}

enum Readiness {
  private static let common = ["misfire", "fuel system", "components"]
  private static let spark: [String?] = [
    "catalyst", "heated catalyst", "evaporative system", "secondary air", "air conditioning", "oxygen sensor", "oxygen sensor heater",
    "egr",
  ]
  private static let compression: [String?] = [
    "hydrocarbon catalyst", "nox aftertreatment", nil, "boost pressure", nil, "exhaust gas sensor", "particulate filter", "egr",
  ]

  /// The monitors with their states.
  @Sendable static func list(_ data: DataRow.Data) -> Decoded {
    guard data.count >= 4 else { return .absent(.notReported) }
    return .value(.list(monitors(data).map { "\($0.name): \($0.isComplete ? "complete" : "incomplete")" }))
  }

  @Sendable static func areComplete(_ data: DataRow.Data) -> Decoded {
    guard data.count >= 4 else { return .absent(.notReported) }
    let found = monitors(data)
    return found.isEmpty ? .absent(.notReported) : .value(.bool(found.allSatisfy(\.isComplete)))
  }

  /// The supported monitors. Each monitor has one bit for "supported" and one for "incomplete".
  static func monitors(_ data: DataRow.Data) -> [(name: String, isComplete: Bool)] {
    var found: [(name: String, isComplete: Bool)] = []
    for (bit, name) in common.enumerated() where data[1] >> bit & 1 == 1 { found.append((name, data[1] >> (bit + 4) & 1 == 0)) }
    for (bit, name) in (data[1] & 8 == 0 ? spark : compression).enumerated() where data[2] >> bit & 1 == 1 {
      if let name { found.append((name, data[3] >> bit & 1 == 0)) }
    }
    return found
  }
}
