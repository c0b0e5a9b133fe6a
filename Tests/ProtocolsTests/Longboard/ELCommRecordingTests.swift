import Testing

@testable import Protocols

/// Recorded dialogues yield the values stored beside them.
@Suite struct ELCommRecordingTests {
  /// The dialogue with a documented board was recorded without detection, so its dialect is configured here.
  @Test(arguments: [("elcomm-as-built", nil), ("elcomm-documented", "documented"), ("elcomm-latched-off", nil)])
  func `a recording yields the values beside it`(_ name: String, _ dialect: String?) throws {
    let options = dialect.map { ["dialect": Value.string($0)] } ?? [:]
    try RecordedDialogue("longboard/\(name)").play(to: try ELCommMachine(Setup(options: options)), kind: "longboard")
  }
}
