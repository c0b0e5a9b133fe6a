import Testing

@testable import Protocols

/// A session from its greeting to its last word, in virtual time.
@Suite struct CarSessionTests {
  @Test func theGreetingIsSaidWordByWordAndTheCarIsMadeToStandOnceItSpeaks() {
    var rig = CarRig(["status-interval": .float(0)])
    rig.start()
    #expect(
      rig.status == "greeting" && rig.text("connected") == "off" && rig.absence("running")?.hasSuffix("it may still be driving") == true)
    rig.run(for: 500 * .millisecond)
    #expect(rig.words() == ["Modes#$#", "MainView#$#Entered"] && rig.times(since: 0, "MainView") == [50])
    rig.hear(CarVector.gyro)
    #expect(rig.status == "ready" && rig.text("connected") == "on" && rig.words().last == "Stop#$#" && rig.number("tilt-rate") == 60)
    rig.hear(CarVector.modes + CarVector.modes)
    rig.run(for: 20 * .second)
    // It tells its modes twice unasked, so that the third answer may be to a question before Stop.
    let confirmation = ["Stop#$#", "Modes#$#", "Stop#$#", "Modes#$#"]
    #expect(rig.words() == ["Modes#$#", "MainView#$#Entered"] + confirmation && rig.fault == nil)
    #expect(rig.text("running") == "off" && rig.text("mode") == "Tilt Steering")
    #expect(rig.text("modes")?.hasPrefix("Tilt Steering,Tilt, Lights,") == true && rig.number("messages") == 5)
  }

  @Test func asDocumentedNothingIsKnownThatTheCarDidNotSay() {
    var rig = CarRig(["dialect": .string("documented"), "status-interval": .float(0)])
    rig.start()
    rig.run(for: .second)
    #expect(rig.words() == ["Modes#$#"] && rig.writes[0].text == "Modes#$#%^%")
    rig.modesAnswer = "Modes#$#Slow;Fast, with lights%^%"
    rig.hear("Modes#$#Slow;Fast, with lights%^%Gyro#$#0.05%^%")
    #expect(rig.status == "ready" && rig.absence("mode") == "no mode was set yet: vehiclectl set mode NAME")
    #expect(rig.absence("video") == "not reported" && rig.number("tilt-rate") == 20)
    let id = rig.set("mode", .string("fast, WITH lights"))
    rig.run(for: .second)
    #expect(rig.isDone(id) && rig.text("mode") == "Fast, with lights")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: .second)
    #expect(rig.tilts.last == "0.400000;0.200000;0.000000" && rig.writes.allSatisfy { !$0.text.contains("\r") })
    let infos = rig.act(.modeInfo)
    rig.drive(for: 500 * .millisecond)
    rig.hear("InfoModes#$#careful;swift, bright%^%")
    #expect(rig.report(infos)?.rows == [["0", "Slow", "careful"], ["1", "Fast, with lights", "swift, bright"]])
  }

  @Test func aCarThatSomebodyElseHoldsIsNamedAndHealsWhenItSpeaks() {
    var rig = CarRig(["status-interval": .float(0)])
    rig.start()
    rig.run(for: 4_999 * .millisecond)
    #expect(rig.status == "greeting" && rig.fault == nil)
    rig.run(for: .millisecond)
    #expect(rig.status == "silent" && rig.fault?.hasPrefix("connected, but no response: another client holds the car") == true)
    #expect(rig.resets.isEmpty && rig.text("connected") == "off" && rig.machine.nextWake == nil)
    let id = rig.set("mode", .string("1"))
    #expect(rig.refusal(id) == CarSession.silence)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost == [CarSession.silence])
    rig.run(for: 3600 * .second)
    rig.hear("Nonsense#$#%^%")
    #expect(rig.status == "silent")
    rig.hear(CarVector.gyro)
    #expect(rig.status == "ready" && rig.fault == nil && rig.text("connected") == "on")
  }

  @Test func aNewConnectionIsANewProgramInModeZero() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("8"))
    rig.run(for: .second)
    rig.hear(CarVector.buttons)
    rig.disconnect()
    #expect(rig.status == "waiting" && rig.fault == nil)
    rig.run(for: 5 * .second)
    rig.connect()
    for name in ["mode", "modes", "buttons-enabled", "tilt-rate", "running"] { #expect(rig.absence(name) != nil, "\(name)") }
    rig.hear(CarVector.gyro + CarVector.modes)
    #expect(rig.text("mode") == "Tilt Steering")
  }

  @Test func whileTheCarIsAwayNothingIsKept() {
    var rig = CarRig()
    rig.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    let commands = [
      rig.set("mode", .string("1")), rig.set("video", .bool(true)), rig.act(.refresh), rig.act(.modeInfo), rig.act(.shutDown),
      rig.act(.stop),
      rig.act(.sendMessage, ["text": .string("hi")]),
    ]
    for id in commands {
      guard case .notConnected(let reason)? = rig.error(id), reason.hasSuffix("the link is not up yet") else {
        Issue.record("\(String(describing: rig.error(id)))")
        continue
      }
    }
    rig.start()
    let early = rig.set("mode", .string("1"))
    #expect(rig.error(early) == .notConnected("the car has not responded yet"))
    rig.hear(CarVector.gyro + CarVector.modes)
    let late = rig.set("mode", .string("1"))
    rig.disconnect()
    #expect(rig.error(late) == .notConnected("gone") && rig.results.values.allSatisfy { $0.count == 1 })
  }

  @Test func theEndComesInTimeWhateverTheLinkDoes() {
    for takes in [true, false] {
      for isHeld in [true, false] {
        var rig = isHeld ? CarRig.driving() : CarRig.ready()
        rig.takesWrites = takes
        if !takes { _ = rig.tilt(0.1, 0) }
        let end = rig.now
        rig.give(.stopping)
        let late = rig.set("mode", .string("1"))
        #expect(rig.error(late) == .notConnected("the link is being closed"))
        rig.give(.leaseBegan(deadline: 300 * .millisecond))
        #expect(rig.lost.last == "the link is being closed")
        rig.run(for: 1_500 * .millisecond)
        #expect((rig.stopped ?? .max) - end <= 1_200 * .millisecond && rig.machine.nextWake == nil && rig.resets.isEmpty)
      }
    }
    var rig = CarRig()
    rig.give(.stopping)
    #expect(rig.stopped == 0)
    rig = CarRig.driving()
    rig.give(.stopping)
    rig.disconnect()
    #expect(rig.stopped == rig.now)
    rig.run(for: 5 * .second)
    rig.connect()
    rig.hear(CarVector.gyro)
    #expect(rig.status == "ready")
  }

  @Test func shuttingDownStopsTheCarAndLetsItGo() {
    var rig = CarRig.driving()
    let start = rig.now
    let id = rig.act(.shutDown)
    #expect(rig.lost == ["the car is being shut down"] && rig.words(since: start) == ["Stop#$#"])
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car is being shut down")
    rig.run(for: .second)
    #expect(rig.words(since: start) == ["Stop#$#", "Stop#$#", "Modes#$#", "ShutDown#$#", "Disconnect#$#"])
    #expect(rig.isDone(id) && rig.resets == ["shutdown command sent"])
  }

  // MARK: What the car says

  @Test func whatTheCarSaysIsAnEventAndStays() {
    var rig = CarRig.ready()
    rig.hear(CarVector.warning)
    #expect(rig.text("message") == "The CPU temperatur is over 80.000000 C." && rig.events == ["The CPU temperatur is over 80.000000 C."])
    rig.hear("Message#$#a;b\u{1B}[31m;c%^%\r\n")
    #expect(rig.text("message") == "a;b;c")
    rig.hear("Message#$#\(String(repeating: "x", count: 5000))%^%\r\n")
    #expect(rig.text("message")?.count == 1000)
    rig.run(for: .second)
    let before = rig.events.count
    for number in 0..<500 { rig.hear("Message#$#\(number)%^%\r\n") }
    #expect(rig.events.count - before == 10 && rig.text("message") == "499")
    rig.run(for: .second)
    rig.hear(CarVector.warning)
    #expect(rig.notes.last == "490 more messages from the car were suppressed by the rate limit")
  }

  @Test func unknownTypesAreIgnoredWithANote() {
    var rig = CarRig.ready()
    let messages = rig.number("messages")
    rig.hear("Teleport#$#now%^%\r\ngyro#$#0.1%^%\r\n")
    #expect(rig.notes.suffix(2) == ["ignored: unknown message type \"Teleport\"", "ignored: unknown message type \"gyro\""])
    #expect(rig.number("messages") == messages && rig.number("bad-frames") == 0)
    rig.hear("nonsense%^%\r\n")
    #expect(rig.number("bad-frames") == 1 && rig.notes.last?.hasPrefix("dropped: no #$# in a message") == true)
  }

  @Test func aSignOfLifeIsGivenAtTheIntervalThatTheCarDictates() {
    var rig = CarRig.ready()
    let start = rig.now
    rig.hear("ConnectionTest#$#0.5%^%\r\n")
    rig.run(for: 2 * .second)
    #expect(rig.times(since: start, "ConnectionTest") == [0, 500, 1000, 1500, 2000])
    rig.hear("ConnectionTest#$#1e-9%^%\r\n")
    let fast = rig.now
    rig.run(for: .second)
    #expect((10...12).contains(rig.times(since: fast, "ConnectionTest").count))
    rig.hear("ConnectionTest#$#nan%^%\r\nConnectionTestStop#$#%^%\r\n")
    let stop = rig.now
    rig.run(for: 5 * .second)
    #expect(rig.times(since: stop + .millisecond, "ConnectionTest").count <= 1)
  }

  @Test func messagesNeedPermissionAndASafeText() {
    var rig = CarRig.ready()
    let forbidden = rig.act(.sendMessage, ["text": .string("hi")])
    #expect(rig.code(forbidden) == "not-allowed" && rig.refusal(forbidden).contains("AutoTT's program does not"))
    rig = CarRig.ready(["allow-messages": .bool(true), "status-interval": .float(0)])
    let good = rig.act(.sendMessage, ["text": .string("hello; car")])
    rig.run(for: .second)
    #expect(rig.isDone(good) && rig.writes.last?.text == "Message#$#hello; car%^%\r\n")
    let count = rig.writes.count
    for text in ["a#$#b", "a%^%b", "a\r\nStop", "ü", "", String(repeating: "x", count: 1500)] {
      let id = rig.act(.sendMessage, ["text": .string(text)])
      guard case .invalid(argument: "text", _)? = rig.error(id) else {
        Issue.record("\(text) was let through")
        continue
      }
    }
    #expect(rig.writes.count == count)
  }

  @Test func tooMuchAtOnceIsRefusedAndTheRestIsDone() {
    var rig = CarRig.ready(["allow-messages": .bool(true), "status-interval": .float(0)])
    let ids = (0..<40).map { rig.act(.sendMessage, ["text": .string(String($0))]) }
    rig.run(for: 5 * .second)
    let done = ids.filter { rig.isDone($0) }
    #expect(done.count == CarSendQueue.maxCommands + 1 && ids.allSatisfy { rig.isDone($0) || rig.code($0) == "busy" })
  }
}
