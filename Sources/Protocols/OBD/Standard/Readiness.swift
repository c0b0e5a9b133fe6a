// The readiness monitors of PIDs 01 and 41 (SAE J1979): which are supported and which are complete. The second and third groups depend on
// spark or compression ignition, which a bit indicates.

/// The period to which a readiness monitor's state applies: the values of column `test` of the reply to action `monitors`.
public enum ReadinessPeriod {
  public static let sinceClearing = "since clearing"
  public static let thisDrivingCycle = "this driving cycle"
}

enum Readiness {
  /// PID 01: since the codes were cleared.
  static let sinceClear: [DataRow] = [
    .bit(Property("mil", .bool, help: "The malfunction indicator lamp (MIL) is commanded on"), 0, 7),
    DataRow(Property("dtc-count", .int, range: 0...127, help: "Number of trouble codes stored in this ECU")) { data in
      data.first.map { .value(.int(Int($0 & 0x7F))) } ?? .absent(.notReported)
    },
    ignition, list("monitors", "Readiness monitors since the codes were cleared"),
    ready("monitors-ready", "All readiness monitors are complete"),
  ]

  /// PID 41: this driving cycle; its first byte is not used.
  static let thisDrive: [DataRow] = [
    list("drive-monitors", "Readiness monitors of this driving cycle"),
    ready("drive-monitors-ready", "All readiness monitors of this driving cycle are complete"),
  ]

  private static let common = ["misfire", "fuel system", "components"]
  private static let spark: [String?] = [
    "catalyst", "heated catalyst", "evaporative system", "secondary air", "air conditioning", "oxygen sensor", "oxygen sensor heater",
    "egr",
  ]
  private static let compression: [String?] = [
    "hydrocarbon catalyst", "nox aftertreatment", nil, "boost pressure", nil, "exhaust gas sensor", "particle filter", "egr",
  ]

  private static let ignition = DataRow(
    Property("ignition-type", .string, choices: ["spark", "compression"], lifetime: .retained, help: "Ignition type of the engine")
  ) { data in
    guard data.count >= 4 else { return .absent(.notReported) }
    // A vehicle without monitors has no combustion engine to describe.
    return data[1] & 7 == 0 && data[2] == 0 ? .absent(.notReported) : .value(.string(data[1] & 8 == 0 ? "spark" : "compression"))
  }

  private static func list(_ name: String, _ help: String) -> DataRow {
    DataRow(Property(name, .list, help: help)) { data in
      guard data.count >= 4 else { return .absent(.notReported) }
      return .value(.list(monitors(data).map { "\($0.name): \($0.isComplete ? "complete" : "incomplete")" }))
    }
  }

  private static func ready(_ name: String, _ help: String) -> DataRow {
    DataRow(Property(name, .bool, help: help)) { data in
      guard data.count >= 4 else { return .absent(.notReported) }
      let found = monitors(data)
      return found.isEmpty ? .absent(.notReported) : .value(.bool(found.allSatisfy(\.isComplete)))
    }
  }

  /// The supported monitors: one bit each for supported and for incomplete.
  static func monitors(_ data: UnsafeBufferPointer<UInt8>) -> [(name: String, isComplete: Bool)] {
    var found: [(name: String, isComplete: Bool)] = []
    for (bit, name) in common.enumerated() where data[1] >> bit & 1 == 1 { found.append((name, data[1] >> (bit + 4) & 1 == 0)) }
    for (bit, name) in (data[1] & 8 == 0 ? spark : compression).enumerated() where data[2] >> bit & 1 == 1 {
      if let name { found.append((name, data[3] >> bit & 1 == 0)) }
    }
    return found
  }
}
