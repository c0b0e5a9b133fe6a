import Testing

@testable import Protocols

/// Recorded dialogues give the values that stand beside them.
@Suite struct ELCommRecordingTests {
  /// That of the board that begins was recorded with its dialect found at once; it is given here.
  @Test(arguments: [("elcomm-as-built", nil), ("elcomm-documented", "documented"), ("elcomm-latched-off", nil)])
  func `a recording gives the values beside it`(_ name: String, _ dialect: String?) throws {
    let options = dialect.map { ["dialect": Value.string($0)] } ?? [:]
    try RecordedDialogue("longboard/\(name)").play(to: try ELCommMachine(Setup(options: options)), kind: "longboard")
  }
}
