import Testing

@testable import Protocols

/// Recorded sessions yield the values stored beside them, and the machine sends what was recorded.
@Suite struct CarRecordingTests {
  @Test(arguments: ["as-built", "documented"]) func `a recording yields the values beside it`(_ dialect: String) throws {
    let setup = Setup(options: ["dialect": .string(dialect), "status-interval": .float(1)], links: [.main: "tcp:127.0.0.1:12345"])
    try RecordedDialogue("car/\(dialect)").play(to: try Kind.rcCar.make(setup), kind: "rc-car")
  }
}
