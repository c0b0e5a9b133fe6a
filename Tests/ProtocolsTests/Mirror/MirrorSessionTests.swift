import Peers
import Testing

@testable import Protocols

/// The order of messages in a session, and sessions over faulty or lost connections.
@Suite struct MirrorSessionTests {
  @Test func `a session starts with the greeting, the name and the stored light`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    #expect(rig.texts == ["Connected", "Name: Ada"])
    #expect(rig.status == "connected" && rig.text("sent-name") == "Ada" && rig.absence("led") != nil)
    rig.set("led", .int(70))
    rig.run(for: .second)
    #expect(rig.texts.dropFirst(2) == ["Name: Ada", "Bright: 70.0"])
    #expect(rig.report() != nil && rig.text("sent-led") == "70" && rig.text("led") == "70")
    rig.run(for: 5 * .second)
    #expect(rig.mirror.display.brightness == "70.0" && rig.mirror.display.user == "Ada" && rig.mirror.failures.isEmpty)
    rig.disconnect()
    rig.forget()
    rig.run(for: 30 * .second)
    rig.connect()
    rig.run(for: .second)
    #expect(rig.texts == ["Connected", "Name: Ada", "Bright: 70.0"])
    try rig.restart(for: .second)
    #expect(rig.texts == ["Connected", "Name: Ada", "Bright: 70.0"] && rig.text("led") == "70")
  }

  @Test func `the mirror understands a whole session as sent by the app`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.set("led", .int(50))
    rig.run(for: 8 * .second)
    rig.give(.stopping)
    rig.run(for: 2 * .second)
    #expect(rig.texts == ["Connected", "Name: Ada", "Name: Ada", "Bright: 50.0", "Disconnected"])
    #expect(rig.mirror.fields.isEmpty && rig.mirror.display.enrolled == ["Ada"])
    let sent = try #require(rig.sends.last).at
    #expect(rig.stopped == sent + 500 * .millisecond)
  }

  @Test func `plain firmware gets plain text`() throws {
    var rig = try MirrorRig(["profile": .string("plain"), "username": .string("Ada")])
    rig.start(for: .second)
    rig.set("led", .int(5))
    rig.run(for: 5 * .second)
    #expect(rig.texts == ["Connected", "Name: Ada", "Name: Ada", "Bright: 5.0"] && rig.mirror.display.brightness == "5.0")
  }

  @Test func `of many settings only the last is sent, with one write at a time`() throws {
    var rig = try MirrorRig()
    rig.linkDelay = 200 * .millisecond
    rig.start(restored: ["introduced": Array("Ada".utf8)], for: .second)
    rig.forget()
    for percent in 1...60 { rig.set("led", .int(percent), id: CommandID(percent)) }
    rig.run(for: 3 * .second)
    #expect(rig.texts == ["Name: Ada", "Bright: 60.0"])
    #expect((1...60).allSatisfy { rig.outcome($0) == .success(Report()) })
    // During a write, further settings are merged.
    rig.forget()
    rig.set("led", .int(1), id: 101)
    rig.run(for: 250 * .millisecond)
    for percent in 2...9 { rig.set("led", .int(percent), id: CommandID(100 + percent)) }
    rig.run(for: 3 * .second)
    #expect(rig.texts == ["Name: Ada", "Bright: 1.0", "Bright: 9.0"] && rig.outcome(105) == .success(Report()))
  }

  // MARK: Names

  @Test func `without a name only the greeting is sent, and the fault names the remedy`() throws {
    var rig = try MirrorRig([:])
    rig.start(restored: ["led": Array("40".utf8)], for: 60 * .second)
    #expect(rig.texts == ["Connected"] && rig.status == "needs-username")
    #expect(rig.fault?.contains("vehiclectl set DEVICE.username NAME") == true && rig.absence("username") != nil)
    rig.set("led", .int(3))
    rig.sendNow(id: 2)
    #expect(rig.code() == "needs-username" && rig.code(2) == "needs-username")
    rig.set("username", .string("Grace"), id: 3)
    rig.run(for: .second)
    #expect(
      rig.texts == ["Connected", "Name: Grace", "Name: Grace", "Bright: 40.0"] || rig.texts == ["Connected", "Name: Grace", "Bright: 40.0"])
    #expect(rig.report(3)?.text?.contains("stand in front of the mirror") == true, "the brightness is sent after the name")
    #expect(rig.status == "connected" && rig.fault == nil && rig.text("username") == "Grace")
  }

  @Test func `a new name is sent as by the app, followed by a value that makes the display read it`() throws {
    var rig = try MirrorRig()
    rig.start(restored: ["led": Array("40".utf8)], for: 10 * .second)
    rig.forget()
    rig.set("username", .string("Ada L"))
    rig.run(for: 10 * .second)
    #expect(rig.texts == ["Name: Ada", "NewName: Ada L", "Bright: 40.0"])
    #expect(rig.report()?.text?.contains("it takes pictures of you") == true)
    #expect(rig.mirror.display.enrolled == ["Ada", "Ada L"] && rig.disk["username"] == Array("Ada L".utf8))
    // A set name takes precedence over the configuration until it is reset.
    try rig.restart(for: .second)
    #expect(rig.texts.dropFirst().first == "Name: Ada L")
    rig.set("username", .string(""), id: 2)
    rig.run(for: 8 * .second)
    #expect(rig.disk["username"] == nil && rig.text("username") == "Ada" && rig.texts.contains("NewName: Ada"))
    rig.forget()
    rig.set("username", .string("Ada"), id: 3)
    rig.run(for: .second)
    #expect(rig.texts.isEmpty && rig.outcome(3) == .success(Report()))
  }

  @Test(arguments: ["O'Neill", "Default", "a+b", "01234567890123456789012345678901", "名"])
  func `a name that the mirror does not support is rejected`(_ name: String) throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.forget()
    rig.set("username", .string(name))
    rig.run(for: .second)
    guard case .invalid(argument: "username", let words)? = rig.error() else { Issue.record("the name was accepted"); return }
    #expect(!words.isEmpty && rig.texts.isEmpty && rig.disk["username"] == nil)
  }

  @Test func `setting a name fails when another name replaces it`() throws {
    var rig = try MirrorRig()
    rig.linkDelay = 300 * .millisecond
    rig.start(for: 2 * .second)
    rig.set("username", .string("One"))
    rig.run(for: 400 * .millisecond)
    rig.set("username", .string("Ada"), id: 2)
    rig.run(for: 3 * .second)
    #expect(rig.code() == "replaced" && rig.outcome(2) != nil)
    #expect(rig.texts.last == "NewName: Ada" && rig.text("sent-name") == "Ada")
  }

  // MARK: Faults

  @Test func `settings are stored without a connection and sent after connecting`() throws {
    var rig = try MirrorRig()
    rig.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    rig.set("led", .int(30))
    rig.set("username", .string("Bob"), id: 2)
    #expect(rig.report()?.text?.hasPrefix("pending") == true && rig.report(2)?.text?.hasPrefix("pending") == true)
    #expect(rig.text("led") == "30" && rig.absence("sent-led") != nil && rig.status == "waiting")
    rig.connect()
    rig.run(for: .second)
    #expect(rig.texts == ["Connected", "Name: Bob", "Bright: 30.0"] && rig.text("sent-led") == "30")
  }

  @Test func `a rejected write is repeated once`() throws {
    var rig = try MirrorRig()
    rig.start(restored: ["introduced": Array("Ada".utf8)], for: .second)
    rig.answers = [.acknowledged, .refused]
    rig.set("led", .int(30))
    rig.run(for: .second)
    #expect(rig.texts.suffix(3) == ["Name: Ada", "Bright: 30.0", "Bright: 30.0"] && rig.outcome() == .success(Report()))
    #expect(rig.resets.isEmpty && rig.notes.contains { $0.contains("retrying") })
    rig.answers = [.acknowledged, .refused, .refused]
    rig.set("led", .int(31), id: 2)
    rig.run(for: .second)
    #expect(rig.resets.count == 1 && rig.fault?.contains("write failed") == true)
    #expect(rig.report(2)?.text?.hasPrefix("pending") == true)
    rig.connect()
    rig.run(for: 6 * .second)
    #expect(rig.texts.last == "Bright: 31.0" && rig.fault == nil && rig.status == "connected")
  }

  @Test func `the link is reset after five seconds without an acknowledgement`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.answers = [.acknowledged, .none]
    rig.set("led", .int(30))
    rig.run(for: 4900 * .millisecond)
    #expect(rig.resets.isEmpty && rig.outcome() == nil)
    rig.run(for: .second)
    #expect(rig.resets == ["no acknowledgement from the mirror for 5 s: check its power"])
    #expect(rig.report()?.text?.hasPrefix("pending") == true && rig.fault != nil)
    rig.forget()
    rig.connect()
    rig.run(for: .second)
    #expect(rig.texts == ["Connected", "Name: Ada", "Bright: 30.0"])
    #expect(rig.status == "silent" && rig.fault != nil, "the same writes were acknowledged before")
    rig.run(for: 4 * .second)
    #expect(rig.status == "connected" && rig.fault == nil && rig.machine.nextWake == nil)
  }

  @Test func `repeated disconnects by the mirror are reported as a possible wrong key`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    for _ in 0..<2 {
      rig.disconnect()
      #expect(rig.fault == nil)
      rig.connect()
      rig.run(for: .second)
    }
    rig.disconnect()
    #expect(rig.fault?.contains("key-file") == true)
    rig.connect()
    rig.run(for: 4 * .second)
    #expect(rig.fault != nil && rig.status == "silent")
    rig.run(for: 2 * .second)
    #expect(rig.fault == nil && rig.status == "connected")
    rig.disconnect()
    rig.run(for: 60 * .second)
    #expect(rig.fault == nil && rig.machine.nextWake == nil)
  }

  @Test func `damaged settings are reported once`() throws {
    var rig = try MirrorRig()
    rig.start(restored: ["led": Array("900".utf8), "username": Array("a/b".utf8), "send": Array("on".utf8), "interval": [0xFF]])
    #expect(
      rig.events == ["stored settings are corrupt and were discarded: led, username, interval; set them again"])
    #expect(rig.text("username") == "Ada" && rig.absence("led") != nil && rig.text("interval") == "60")
  }

  @Test func `a command is answered before its caller times out`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.linkDelay = 4500 * .millisecond
    rig.set("led", .int(30))
    rig.run(for: 7900 * .millisecond)
    #expect(rig.outcome() == nil)
    rig.run(for: 200 * .millisecond)
    #expect(rig.report()?.text?.hasPrefix("pending") == true)
    rig.run(for: 5 * .second)
    #expect(rig.text("sent-led") == "30" && rig.resets.isEmpty)
  }

  @Test func `a setting that cannot be stored is not sent`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.forget()
    rig.diskWorks = false
    rig.set("led", .int(30))
    rig.run(for: .second)
    #expect(rig.error() == .refused(code: .notStored, "no space") && rig.texts.isEmpty && rig.absence("led") != nil)
  }

  @Test func `a cancelled command is not answered, but its value is sent`() throws {
    var rig = try MirrorRig()
    rig.linkDelay = .second
    rig.start(for: 3 * .second)
    rig.set("led", .int(30))
    rig.give(.cancelled(1))
    rig.run(for: 4 * .second)
    #expect(rig.outcome() == nil && rig.text("sent-led") == "30")
  }

  // MARK: Shutdown

  @Test(arguments: [(0, false), (100, false), (3000, false), (5100, false), (6500, false), (6700, true), (7100, true), (60_000, true)])
  func `Disconnected is sent once the display has read its values, or omitted`(_ milliseconds: Int, _ isSent: Bool) throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.set("led", .int(30))
    rig.run(for: Int64(milliseconds) * .millisecond)
    let requested = rig.now
    let shows = { (rig: MirrorRig) in rig.mirror.display.brightness == "30.0" }
    rig.give(.stopping)
    rig.run(for: 1200 * .millisecond)
    let stopped = try #require(rig.stopped)
    #expect(stopped - requested <= 1200 * .millisecond && (rig.texts.last == "Disconnected") == isSent)
    #expect(isSent || rig.notes.contains { $0.contains("without Disconnected") })
    rig.disconnect()
    rig.run(for: 5 * .second)
    #expect(shows(rig), "the display has read the value in any case")
    #expect(rig.mirror.failures.isEmpty)
  }

  @Test func `the shutdown sequence ends in time, whatever the link does`() throws {
    for answer in [MirrorLink.Answer.none, .refused, .acknowledged] {
      var rig = try MirrorRig()
      rig.start(for: 10 * .second)
      rig.answer = answer
      rig.give(.stopping)
      rig.run(for: 1200 * .millisecond)
      #expect(rig.stopped != nil)
    }
    // A write is in flight and is never acknowledged.
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.answer = .none
    rig.set("led", .int(3))
    rig.give(.stopping)
    rig.run(for: 1200 * .millisecond)
    #expect(rig.stopped != nil && rig.texts.last != "Disconnected")
    // There is no link.
    var idle = try MirrorRig()
    idle.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    idle.give(.stopping)
    #expect(idle.stopped == 0)
    // The link is lost meanwhile.
    var gone = try MirrorRig()
    gone.start(for: 10 * .second)
    gone.answer = .none
    gone.give(.stopping)
    gone.disconnect()
    #expect(gone.stopped == gone.now)
    gone.connect()
    #expect(gone.texts.last == "Connected")
  }
}
