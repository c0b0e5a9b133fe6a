import Peers
import Testing

@testable import Protocols

/// Dialogues with the simulated board in virtual time: dialect detection, poll rate, and missing responses.
@Suite struct ELCommDialogueTests {
  static let asBuilt: [String: Value] = ["dialect": .string("as-built")]
  static let documented: [String: Value] = ["dialect": .string("documented")]

  @Test func `a board as built is detected by two responses to two characters`() throws {
    var rig = try ELCommRig()
    rig.start(for: .second / 2 - 1)
    #expect(rig.sends.isEmpty && rig.status == "detecting" && rig.absence("dialect") == "not detected yet")
    rig.run(for: 6 * .second)
    #expect(rig.sent.hasPrefix("-0-0--BBBB") && rig.status == "live" && rig.text("dialect") == "as-built" && rig.fault == nil)
    #expect(rig.text("connected") == "on" && rig.number("battery") == 100 && rig.number("battery-raw") == 111)
    #expect(rig.number("speed").map { $0 > 5 } == true && rig.number("distance").map { $0 >= 0 } == true)
    #expect(rig.absence("mode") == "not supported by ELComm" && rig.absence("extra") == "the board sends no additional fields")
    #expect(rig.number("cycle-rate").map { abs($0 - 5) < 0.2 } == true && rig.number("round-trip").map { (35...75).contains($0) } == true)
    #expect(rig.number("missed") == 0 && rig.number("bad-messages") == 0)
  }

  /// Regression: one response to a byte of an earlier daemon was taken for a documented board, and the buzzer did not work.
  @Test(arguments: [false, true], ["", "no-vesc"])
  func `a new daemon detects a board as built despite pending responses`(_ isBuffered: Bool, _ fault: String) throws {
    for step in 0..<60 {
      var rig = try fault.isEmpty ? ELCommRig() : ELCommRig(faults: fault)
      rig.start(for: 3 * .second + Nanoseconds(step) * 37 * .millisecond)
      rig.sendToBoard(String(repeating: "B", count: [0, 1, 2, 3, 10, 60][step % 6]))
      try rig.startFresh(after: Nanoseconds(step / 6) * 83 * .millisecond, isBuffered: isBuffered, for: 16 * .second)
      #expect(rig.text("dialect") == "as-built", "step \(step)")
      rig.set("buzzer", .bool(true))
      rig.run(for: .second)
      #expect(rig.isDone() && rig.board.isBuzzerLatched, "step \(step)")
    }
  }

  @Test(arguments: [false, true]) func `a new daemon detects a documented board at any time`(_ isBuffered: Bool) throws {
    for step in 0..<60 {
      var rig = try ELCommRig(dialect: .documented)
      rig.start(for: 3 * .second + Nanoseconds(step) * 37 * .millisecond)
      try rig.startFresh(after: Nanoseconds(step / 6) * 83 * .millisecond, isBuffered: isBuffered, for: 8 * .second)
      #expect(rig.text("dialect") == "documented", "step \(step)")
      rig.set("buzzer", .bool(true))
      rig.run(for: .second)
      #expect(rig.isDone() && rig.board.isSounding, "step \(step)")
    }
  }

  @Test func `a buzzer-off that switches a board as built on is rejected`() throws {
    for number in [7, 70, 17] {
      #expect(throws: OptionError.self) { _ = try ELCommMachine(Setup(options: ["buzzer-off": .int(number)])) }
      _ = try ELCommMachine(Setup(options: ["buzzer-off": .int(number), "dialect": .string("documented")]))
    }
    for (number, probe) in [(0, "-0"), (3, "03"), (45, "45"), (100, "100")] {
      let machine = try ELCommMachine(Setup(options: ["buzzer-off": .int(number)]))
      #expect(String(decoding: machine.settings.probe, as: UTF8.self) == probe)
    }
  }

  @Test func `a documented board is detected by one response to two characters, and each message gets a response at once`() throws {
    var rig = try ELCommRig(dialect: .documented)
    rig.start(for: 5 * .second)
    #expect(rig.text("dialect") == "documented" && rig.status == "live" && rig.fault == nil)
    #expect(rig.sent.hasPrefix("-0-00"))
    let responses = rig.sends.dropFirst(3)
    #expect(!responses.isEmpty && rig.sends.dropFirst(2).allSatisfy { $0.bytes == [0x30] })
    let arrivals = Array(rig.arrivals.suffix(responses.count))
    #expect(responses.map(\.at) == arrivals)
    #expect(rig.number("round-trip") == 95 && rig.number("missed") == 0)
  }

  @Test func `messages after output of a Bluetooth module are not a documented board`() throws {
    var rig = try ELCommRig()
    rig.start()
    rig.sendToBoard("OK+CONN:00150B001A2B")
    rig.run(for: 2 * .second)
    #expect(rig.sends.isEmpty && rig.arrivals.count > 15)
    rig.run(for: 3 * .second)
    #expect(rig.text("dialect") == "as-built" && rig.status == "live")
  }

  @Test func `a board that sends more than a full buffer without a request is documented`() throws {
    var rig = try ELCommRig()
    rig.isBoardMute = true
    rig.start()
    for _ in 0..<65 {
      #expect(rig.sends.isEmpty)
      rig.receive("12$88$1$0.35")
      rig.run(for: 200 * .millisecond)
    }
    #expect(rig.text("dialect") == "documented" && rig.sends.first?.bytes == [0x30])
  }

  @Test func `a configured dialect is used without detection`() throws {
    var built = try ELCommRig(Self.asBuilt)
    built.start()
    #expect(built.sent == "-" && built.text("dialect") == "as-built")
    var waiting = try ELCommRig(Self.documented)
    waiting.start(for: 10 * .second)
    #expect(waiting.sends.isEmpty && waiting.status == "silent" && waiting.fault?.contains("as-built") == true)
    var numbers = try ELCommRig(["buzzer-off": .int(45), "buzzer-on": .int(55)], dialect: .documented)
    numbers.start(for: 2 * .second)
    #expect(Set(numbers.sends.map(\.bytes)) == [Array("45".utf8)])
  }

  @Test func `invalid options are rejected`() throws {
    for options: [String: Value] in [["rate": .float(10.5)], ["buzzer-on": .int(0)], ["rate": .float(.nan)]] {
      #expect(throws: OptionError.self) { _ = try ELCommMachine(Setup(options: options)) }
    }
    _ = try Kind.longboard.make(Setup(options: ["protocol": .string("elcomm"), "rate": .float(10)]))
  }

  @Test(arguments: [1.0, 5.0, 10.0]) func `at most one byte awaits a response at any rate`(_ rate: Double) throws {
    var rig = try ELCommRig(["rate": .float(rate), "dialect": .string("as-built")], faults: "no-vesc")
    rig.start(for: 30 * .second)
    #expect(rig.sends.count >= rig.arrivals.count && rig.sends.count - rig.arrivals.count <= 1)
    for (send, next) in zip(rig.sends, rig.sends.dropFirst()) { #expect(next.at - send.at >= Nanoseconds(1e9 / rate)) }
    #expect(rig.number("missed") == 0 && rig.number("round-trip").map { (35...185).contains($0) } == true)
  }

  @Test func `a lost message is counted, and polled again`() throws {
    var rig = try ELCommRig(faults: "cut:10")
    rig.start(for: 30 * .second)
    #expect(rig.number("missed").map { $0 > 5 } == true && rig.number("bad-messages").map { $0 > 5 } == true)
    #expect(rig.status == "live" && rig.sends.count - rig.arrivals.count <= 1)
    #expect(rig.text("last-bad-message")?.isEmpty == false)
  }

  @Test func `a late response does not increase the number of bytes in flight`() throws {
    var rig = try ELCommRig(Self.asBuilt, faults: "coalesce:10", "split")
    rig.start(for: 60 * .second)
    #expect(rig.number("missed").map { $0 > 5 } == true && rig.number("bad-messages") == 0)
    let gaps = zip(rig.sends, rig.sends.dropFirst()).map { $1.at - $0.at }
    #expect(gaps.allSatisfy { $0 >= 200 * .millisecond } && gaps.contains { $0 >= 400 * .millisecond })
    #expect(
      [0, 1].contains(rig.sends.count - rig.machine.dialogue.receiver.messages),
      "\(rig.sends.count) \(rig.machine.dialogue.receiver.messages)")
  }

  @Test func `a silent board is reported, polled, and detected again`() throws {
    var rig = try ELCommRig(faults: "silence:20:9000")
    rig.start(for: 6 * .second)
    rig.run(for: 4 * .second)
    #expect(rig.status == "silent" && rig.fault == "the board does not respond: check its power")
    for name in ["speed", "battery", "connected", "distance", "buzzer", "round-trip"] {
      #expect(rig.absence(name) == "the board does not respond: check its power", "\(name)")
    }
    rig.run(for: 8 * .second)
    #expect(rig.status == "live" && rig.fault == nil && rig.number("speed") != nil && rig.resets.isEmpty)
  }

  @Test func `a board that changes its dialect is detected again`() throws {
    var rig = try ELCommRig(dialect: .documented)
    rig.start(for: 2 * .second)
    #expect(rig.text("dialect") == "documented")
    rig.board = ArduinoBoard(.asBuilt)
    rig.disconnect()
    rig.connect()
    rig.run(for: 3 * .second)
    #expect(rig.text("dialect") == "as-built" && rig.status == "live")
  }

  @Test func `pending responses to a killed daemon are not a documented board`() throws {
    var rig = try ELCommRig()
    rig.start(for: 3 * .second)
    try rig.restart()
    rig.run(for: 50 * .millisecond)
    rig.receive("3$88$1$0.35")
    rig.run(for: 3 * .second)
    #expect(rig.text("dialect") == "as-built" && rig.sent.hasPrefix("-0--B"))
  }

  @Test(arguments: [2, 3, 4, 5, 6, 7]) func `late responses that arrive together are not a documented board`(_ steps: Int) throws {
    var rig = try ELCommRig()
    rig.start(for: 3 * .second)
    rig.isStalled = true
    rig.run(for: 1_500 * .millisecond + Nanoseconds(steps) * 300 * .millisecond)
    rig.isStalled = false
    rig.run(for: 4 * .second)
    #expect(rig.text("dialect") == "as-built" && rig.status == "live")
    rig.set("buzzer", .bool(true))
    rig.run(for: .second)
    #expect(rig.isDone() && rig.board.isSounding)
  }

  @Test func `a link that accepts no write is reset`() throws {
    var rig = try ELCommRig(Self.asBuilt)
    rig.linkDelay = nil
    rig.start(for: 4 * .second)
    #expect(rig.sends.count == 1 && rig.resets.isEmpty)
    rig.run(for: 2 * .second)
    #expect(rig.resets == ["write timeout"] && rig.machine.nextWake == nil)
  }

  @Test func `a failed write counts as a byte without a response`() throws {
    var rig = try ELCommRig(Self.asBuilt)
    rig.isBoardMute = true
    rig.start()
    rig.give(.sent(rig.machine.dialogue.writer.lastID, failure: "busy"))
    rig.run(for: 300 * .millisecond)
    rig.isBoardMute = false
    rig.run(for: 3 * .second)
    #expect(rig.status == "live" && rig.number("missed") == 1)
  }

  @Test func `a link on which every write fails is reported`() throws {
    var rig = try ELCommRig(Self.asBuilt)
    rig.isBoardMute = true
    rig.linkDelay = nil
    rig.start()
    for _ in 0..<12 {
      rig.give(.sent(rig.machine.dialogue.writer.lastID, failure: "no such characteristic"))
      rig.surroundings.forgetSends()
      rig.run(for: 400 * .millisecond)
    }
    #expect(rig.fault == "cannot send to the board: no such characteristic" && rig.number("speed") == nil)
  }

  @Test func `fields after the fourth are published`() throws {
    var rig = try ELCommRig(faults: "extension")
    rig.start(for: 4 * .second)
    #expect(rig.values["extra"] == .value(.list(["41", "ok"])) || rig.values["extra"] == .value(.list(["40", "ok"])))
    #expect(rig.number("bad-messages") == 0 && rig.number("missed") == 0)
  }

  @Test func `a board without its VESC publishes reasons instead of values`() throws {
    var rig = try ELCommRig(faults: "no-vesc")
    rig.start(for: 2 * .second)
    #expect(rig.status == "no-vesc" && rig.fault == nil && rig.text("connected") == "off")
    for name in ["speed", "battery", "battery-raw"] { #expect(rig.absence(name) == "the VESC has not responded to the board yet") }
    rig.run(for: 5 * .second)
    #expect(rig.fault == "the VESC does not respond to the board: switch it on, and check its wiring")
  }

  @Test func `a latched board is off until it is reset`() throws {
    var rig = try ELCommRig(faults: "off-latch:@4", "reset:@8")
    rig.start(for: 6 * .second)
    #expect(rig.status == "off" && rig.fault == "the board has latched off after a voltage drop: reset it")
    #expect(rig.absence("speed") == rig.fault && rig.absence("battery") == rig.fault && rig.text("connected") == "off")
    rig.run(for: 4 * .second)
    #expect(rig.status == "live" && rig.fault == nil && rig.text("connected") == "on")
  }

  @Test func `the battery is absent in the first half second`() throws {
    var rig = try ELCommRig(Self.asBuilt)
    rig.start(for: 200 * .millisecond)
    #expect(rig.absence("battery") == "the board has not measured its battery yet" && rig.number("battery-raw") == -355)
    #expect(rig.number("speed") != nil)
  }
}
