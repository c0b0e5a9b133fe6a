import Testing

@testable import Protocols

/// Recorded dialogues give the stored values.
@Suite struct OBDRecordingTests {
  static let names = ["kona-2023-driving", "ev6-2022-cold", "ev6-2022-wallbox", "soul-30kwh-no-ats0", "e-gmp-no-line-ends"]

  @Test(arguments: names, [0.0, 0.4, 0.9]) func aRecordingGivesTheValuesBesideIt(_ name: String, _ phase: Double) throws {
    try RecordedDialogue("obd/\(name)").play(to: OBDMachine(phase: phase, isFastOnly: true), kind: "obd")
  }
}
