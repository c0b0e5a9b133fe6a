import Peers
import Testing

@testable import Protocols

/// The buzzer is switched off in every case.
@Suite struct ELCommBuzzerTests {
  static let dialects: [ArduinoBoard.Dialect] = ArduinoBoard.Dialect.allCases

  static func connected(_ dialect: ArduinoBoard.Dialect, _ options: [String: Value] = [:]) throws -> ELCommRig {
    var rig = try ELCommRig(options, dialect: dialect)
    rig.start(for: 3 * .second)
    return rig
  }

  @Test(arguments: dialects) func `the buzzer stays on until off, and the board confirms it`(_ dialect: ArduinoBoard.Dialect) throws {
    var rig = try Self.connected(dialect)
    #expect(rig.text("buzzer") == "off")
    rig.set("buzzer", .bool(true))
    #expect(rig.results[1] == nil)
    rig.run(for: 500 * .millisecond)
    #expect(rig.isDone() && rig.board.isSounding && rig.text("buzzer") == "on")
    rig.run(for: 5 * .second)
    #expect(rig.board.isSounding)
    rig.set("buzzer", .bool(false), id: 2)
    rig.run(for: 500 * .millisecond)
    #expect(rig.isDone(2) && !rig.board.isSounding && rig.text("buzzer") == "off")
  }

  @Test(arguments: dialects) func `on ends after buzzer-limit`(_ dialect: ArduinoBoard.Dialect) throws {
    var rig = try Self.connected(dialect)
    rig.set("buzzer", .bool(true))
    rig.run(for: 9_900 * .millisecond)
    #expect(rig.board.isSounding)
    rig.run(for: 700 * .millisecond)
    #expect(!rig.board.isSounding && rig.text("buzzer") == "off")
    var short = try Self.connected(dialect, ["buzzer-limit": .float(1)])
    short.set("buzzer", .bool(true))
    short.run(for: 1_700 * .millisecond)
    #expect(!short.board.isSounding && short.isDone())
  }

  @Test func `every poll repeats on, and off is sent twice`() throws {
    var rig = try Self.connected(.asBuilt)
    let before = rig.sends.count
    rig.set("buzzer", .bool(true))
    rig.run(for: 2 * .second)
    rig.set("buzzer", .bool(false), id: 2)
    rig.run(for: 2 * .second)
    let bytes = String(decoding: rig.sends.dropFirst(before).flatMap(\.bytes), as: UTF8.self)
    #expect(bytes.drop { $0 == "B" }.drop { $0 == "7" }.hasPrefix("--BB"), "\(bytes)")
    #expect(Set(bytes) == ["B", "7", "-"])
  }

  @Test func `the buzzer sounds again after a reset of the board`() throws {
    var rig = try ELCommRig(faults: "reset:@5")
    rig.start(for: 3 * .second)
    rig.set("buzzer", .bool(true))
    rig.run(for: 4 * .second)
    #expect(rig.board.isSounding)
  }

  @Test(arguments: dialects) func `buzz lasts as long as requested`(_ dialect: ArduinoBoard.Dialect) throws {
    for (text, seconds): (String?, Double) in [("2s", 2), ("500ms", 0.5), ("1.5", 1.5), (nil, 1)] {
      var rig = try Self.connected(dialect)
      rig.buzz(text.map { ["duration": .string($0)] } ?? [:])
      var sounded: Nanoseconds = 0
      for _ in 0..<400 {
        rig.run(for: 10 * .millisecond)
        if rig.board.isSounding { sounded += 10 * .millisecond }
      }
      #expect(rig.isDone() && !rig.board.isSounding)
      #expect(abs(Double(sounded) / 1e9 - seconds) < 0.35, "\(text ?? "") \(sounded)")
    }
  }

  @Test(arguments: dialects) func `hold lasts until its caller disconnects, with progress`(_ dialect: ArduinoBoard.Dialect) throws {
    var rig = try Self.connected(dialect)
    rig.buzz(["hold": .bool(true)])
    rig.run(for: 25 * .second)
    #expect(rig.board.isSounding && rig.results[1] == nil && rig.progress[1].map { $0.count >= 20 } == true)
    rig.give(.cancelled(1))
    rig.run(for: 500 * .millisecond)
    #expect(!rig.board.isSounding && rig.results[1] == nil && rig.text("buzzer") == "off")
  }

  @Test(arguments: dialects) func `the last command wins`(_ dialect: ArduinoBoard.Dialect) throws {
    var rig = try Self.connected(dialect)
    rig.buzz(["hold": .bool(true)])
    rig.run(for: .second)
    rig.set("buzzer", .bool(false), id: 2)
    #expect(rig.error() == .refused(code: .replaced, "replaced by another buzzer command"))
    rig.run(for: 500 * .millisecond)
    #expect(rig.isDone(2) && !rig.board.isSounding)
    for id in CommandID(3)...40 { rig.set("buzzer", .bool(id % 2 == 0), id: id) }
    rig.run(for: 500 * .millisecond)
    #expect((3..<40).allSatisfy { rig.error($0) != nil } && rig.isDone(40) && rig.board.isSounding)
  }

  @Test(arguments: dialects)
  func `a lost link ends the sound, and off is the first message on the next link`(_ dialect: ArduinoBoard.Dialect)
    throws
  {
    var rig = try Self.connected(dialect)
    rig.buzz(["hold": .bool(true)])
    rig.run(for: .second)
    let before = rig.sends.count
    rig.disconnect()
    #expect(rig.error() == .notConnected("gone") && rig.board.isSounding)
    rig.set("buzzer", .bool(true), id: 2)
    #expect(rig.error(2) == .notConnected("gone"))
    rig.run(for: 3 * .second)
    #expect(rig.sends.count == before)
    rig.connect()
    // Also if the next command arrives immediately.
    rig.set("buzzer", .bool(true), id: 3)
    rig.run(for: 2 * .second)
    // The probe for the dialect is off in both.
    #expect(rig.sends[before].bytes == Array("-0".utf8) && rig.isDone(3) && rig.board.isSounding)
  }

  @Test(arguments: dialects)
  func `a killed daemon leaves the buzzer on, and the next one switches it off first`(_ dialect: ArduinoBoard.Dialect)
    throws
  {
    var rig = try Self.connected(dialect)
    rig.set("buzzer", .bool(true))
    rig.run(for: .second)
    try rig.restart(for: 3 * .second)
    // The probe for the dialect is off in both.
    #expect(rig.sent.hasPrefix("-0") && !rig.board.isSounding && rig.text("buzzer") == "off")
  }

  @Test(arguments: dialects, [0, 3 * Nanoseconds.millisecond, 40 * .millisecond]) func `off is the last message of a stopping daemon`(
    _ dialect: ArduinoBoard.Dialect, _ linkDelay: Nanoseconds
  ) throws {
    for step in 0..<10 {
      var rig = try Self.connected(dialect)
      rig.linkDelay = linkDelay
      rig.set("buzzer", .bool(true))
      rig.run(for: .second + Nanoseconds(step) * 23 * .millisecond)
      #expect(rig.board.isBuzzerLatched)
      rig.give(.stopping)
      rig.run(for: .second)
      #expect(rig.hasStopped && rig.sends.last?.bytes == (dialect == .asBuilt ? [45] : [0x30]))
      #expect(!rig.board.isBuzzerLatched && rig.machine.nextWake == nil)
    }
  }

  /// Sends last-will frames to the board, as the guardian does.
  private func execute(_ will: LastWill?, over rig: inout ELCommRig) {
    for message in will?.dead ?? [] {
      rig.run(for: message.pause)
      rig.sendToBoard(String(decoding: message.bytes, as: UTF8.self))
    }
    rig.run(for: .second)
  }

  @Test(arguments: dialects) func `last-will frames are set while the buzzer may sound`(_ dialect: ArduinoBoard.Dialect) throws {
    for step in 0..<20 {
      var rig = try Self.connected(dialect)
      #expect(rig.wills.isEmpty, "nothing sounds")
      rig.set("buzzer", .bool(true))
      #expect(rig.wills.count == 1 && rig.wills[0]?.frozen == [])
      rig.run(for: .second + Nanoseconds(step) * 11 * .millisecond)
      #expect(rig.board.isSounding && rig.wills.count == 1)
      // The daemon is killed: only the last-will frames reach the board.
      rig.kill()
      execute(rig.wills[0], over: &rig)
      #expect(!rig.board.isBuzzerLatched, "step \(step)")
    }
    var rig = try Self.connected(dialect)
    rig.set("buzzer", .bool(true))
    rig.run(for: .second)
    rig.set("buzzer", .bool(false), id: 2)
    #expect(rig.wills.count == 1, "off is not confirmed yet")
    rig.run(for: .second)
    #expect(rig.wills.count == 2 && rig.wills[1] == nil)
    rig.set("buzzer", .bool(true), id: 3)
    rig.run(for: .second)
    rig.disconnect()
    #expect(rig.wills.count == 4 && rig.wills[3] == nil)
  }

  @Test func `a stopping daemon does not wait for a link that is down or stuck`() throws {
    var rig = try ELCommRig()
    rig.give(.stopping)
    #expect(rig.hasStopped && rig.sends.isEmpty)
    var lost = try Self.connected(.asBuilt)
    lost.linkDelay = nil
    lost.run(for: 300 * .millisecond)
    lost.give(.stopping)
    #expect(!lost.hasStopped)
    lost.disconnect()
    #expect(lost.hasStopped)
  }

  @Test(arguments: dialects)
  func `a missing response is a timeout, and the buzzer does not sound later`(_ dialect: ArduinoBoard.Dialect) throws {
    var rig = try Self.connected(dialect)
    rig.isBoardMute = true
    rig.run(for: 200 * .millisecond)
    rig.set("buzzer", .bool(true))
    rig.run(for: 4 * .second)
    #expect(rig.error() == .timeout(milliseconds: 3000))
    rig.isBoardMute = false
    rig.run(for: 5 * .second)
    #expect(!rig.board.isSounding && rig.text("buzzer") == "off")
  }

  @Test func `an invalid or too long duration is rejected with the reason`() throws {
    var rig = try Self.connected(.asBuilt)
    for (id, text) in ["", "s", "2 s", "-1", "0", "0ms", "1e3", "inf", "nan", "11", "10.01s", "10001ms", "1.2.3"].enumerated() {
      rig.buzz(["duration": .string(text)], id: CommandID(id + 1))
      guard case .invalid(argument: "duration", _)? = rig.error(CommandID(id + 1)) else { Issue.record("\(text) was accepted"); continue }
    }
    rig.buzz(["duration": .string("2s"), "hold": .bool(true)], id: 50)
    #expect(rig.error(50) == .invalid(argument: "hold", "cannot be combined with duration; give only one of them"))
    rig.buzz(["duration": .string("10s")], id: 51)
    rig.run(for: 11 * .second)
    #expect(rig.isDone(51))
  }

  @Test func `a caller that disconnects ends a timed sound, but not a set state`() throws {
    var rig = try Self.connected(.asBuilt)
    rig.buzz(["duration": .string("9s")])
    rig.run(for: .second)
    rig.give(.cancelled(1))
    rig.run(for: 500 * .millisecond)
    #expect(!rig.board.isSounding && rig.results[1] == nil)
    rig.set("buzzer", .bool(true), id: 2)
    rig.give(.cancelled(2))
    rig.run(for: .second)
    #expect(rig.board.isSounding && rig.results[2] == nil)
  }
}
