import Testing

@testable import Protocols

/// A session from its greeting to Disconnect, in virtual time.
@Suite struct CarSessionTests {
  @Test func `the greeting is sent in separate writes, and the car is stopped after its first message`() {
    var rig = CarRig(["status-interval": .float(0)])
    rig.start()
    #expect(
      rig.status == "greeting" && rig.text("connected") == "off" && rig.absence("running")?.hasSuffix("it may still be driving") == true)
    rig.run(for: 500 * .millisecond)
    #expect(rig.messages() == ["Modes#$#", "MainView#$#Entered"] && rig.times(since: 0, "MainView") == [50])
    rig.receive(CarVector.gyro)
    #expect(rig.status == "ready" && rig.text("connected") == "on" && rig.messages().last == "Stop#$#" && rig.number("tilt-rate") == 60)
    rig.receive(CarVector.modes + CarVector.modes)
    rig.run(for: 20 * .second)
    // It sends its modes twice without a request, so the third list may be the response to a request before Stop.
    let confirmation = ["Stop#$#", "Modes#$#", "Stop#$#", "Modes#$#"]
    #expect(rig.messages() == ["Modes#$#", "MainView#$#Entered"] + confirmation && rig.fault == nil)
    #expect(rig.text("running") == "off" && rig.text("mode") == "Tilt Steering")
    #expect(rig.text("modes")?.hasPrefix("Tilt Steering,Tilt, Lights,") == true && rig.number("messages") == 5)
  }

  @Test func `in the documented dialect only reported values are published`() {
    var rig = CarRig(["dialect": .string("documented"), "status-interval": .float(0)])
    rig.start()
    rig.run(for: .second)
    #expect(rig.messages() == ["Modes#$#"] && rig.writes[0].text == "Modes#$#%^%")
    rig.modesResponse = "Modes#$#Slow;Fast, with lights%^%"
    rig.receive("Modes#$#Slow;Fast, with lights%^%Gyro#$#0.05%^%")
    #expect(rig.status == "ready" && rig.absence("mode") == "no mode was set yet: vehiclectl set DEVICE.mode NAME")
    #expect(rig.absence("video") == "not reported" && rig.number("tilt-rate") == 20)
    let id = rig.set("mode", .string("fast, WITH lights"))
    rig.run(for: .second)
    #expect(rig.isDone(id) && rig.text("mode") == "Fast, with lights")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: .second)
    #expect(rig.tilts.last == "0.400000;0.200000;0.000000" && rig.writes.allSatisfy { !$0.text.contains("\r") })
    let infos = rig.act(.modeInfo)
    rig.drive(for: 500 * .millisecond)
    rig.receive("InfoModes#$#careful;swift, bright%^%")
    #expect(rig.report(infos)?.rows == [["0", "Slow", "careful"], ["1", "Fast, with lights", "swift, bright"]])
  }

  @Test func `a silent car has a fault until its first message`() {
    var rig = CarRig(["status-interval": .float(0)])
    rig.start()
    rig.run(for: 4_999 * .millisecond)
    #expect(rig.status == "greeting" && rig.fault == nil)
    rig.run(for: .millisecond)
    #expect(rig.status == "silent" && rig.fault?.hasPrefix("connected, but no response: another client is connected to the car") == true)
    #expect(rig.resets.isEmpty && rig.text("connected") == "off" && rig.machine.nextWake == nil)
    let id = rig.set("mode", .string("1"))
    #expect(rig.refusal(id) == CarSession.silentMessage)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost == [CarSession.silentMessage])
    rig.run(for: 3600 * .second)
    rig.receive("Nonsense#$#%^%")
    #expect(rig.status == "silent")
    rig.receive(CarVector.gyro)
    #expect(rig.status == "ready" && rig.fault == nil && rig.text("connected") == "on")
  }

  @Test func `a new connection starts in mode 0`() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("8"))
    rig.run(for: .second)
    rig.receive(CarVector.buttons)
    rig.disconnect()
    #expect(rig.status == "waiting" && rig.fault == nil)
    rig.run(for: 5 * .second)
    rig.connect()
    for name in ["mode", "modes", "buttons-enabled", "tilt-rate", "running"] { #expect(rig.absence(name) != nil, "\(name)") }
    rig.receive(CarVector.gyro + CarVector.modes)
    #expect(rig.text("mode") == "Tilt Steering")
  }

  @Test func `without a link commands are rejected, and values are withdrawn`() {
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
    rig.receive(CarVector.gyro + CarVector.modes)
    let late = rig.set("mode", .string("1"))
    rig.disconnect()
    #expect(rig.error(late) == .notConnected("gone") && rig.results.values.allSatisfy { $0.count == 1 })
  }

  @Test func `the shutdown sequence ends in time in every state of the link`() {
    for takes in [true, false] {
      for isLeaseHeld in [true, false] {
        var rig = isLeaseHeld ? CarRig.driving() : CarRig.ready()
        rig.acceptsWrites = takes
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
    rig.receive(CarVector.gyro)
    #expect(rig.status == "ready")
  }

  @Test func `shut-down stops the car and closes the link`() {
    var rig = CarRig.driving()
    let start = rig.now
    let id = rig.act(.shutDown)
    #expect(rig.lost == ["the car is being shut down"] && rig.messages(since: start) == ["Stop#$#"])
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car is being shut down")
    rig.run(for: .second)
    #expect(rig.messages(since: start) == ["Stop#$#", "Stop#$#", "Modes#$#", "ShutDown#$#", "Disconnect#$#"])
    #expect(rig.isDone(id) && rig.resets == ["shutdown command sent"])
  }

  // MARK: Messages of the car

  @Test func `a message of the car is an event and a property`() {
    var rig = CarRig.ready()
    rig.receive(CarVector.warning)
    #expect(rig.text("message") == "The CPU temperatur is over 80.000000 C." && rig.events == ["The CPU temperatur is over 80.000000 C."])
    rig.receive("Message#$#a;b\u{1B}[31m;c%^%\r\n")
    #expect(rig.text("message") == "a;b;c")
    rig.receive("Message#$#\(String(repeating: "x", count: 5000))%^%\r\n")
    #expect(rig.text("message")?.count == 1000)
    rig.run(for: .second)
    let before = rig.events.count
    for number in 0..<500 { rig.receive("Message#$#\(number)%^%\r\n") }
    #expect(rig.events.count - before == 10 && rig.text("message") == "499")
    rig.run(for: .second)
    rig.receive(CarVector.warning)
    #expect(rig.notes.last == "490 more messages from the car were suppressed by the rate limit")
  }

  @Test func `unknown message types are ignored with a note`() {
    var rig = CarRig.ready()
    let messages = rig.number("messages")
    rig.receive("Teleport#$#now%^%\r\ngyro#$#0.1%^%\r\n")
    #expect(rig.notes.suffix(2) == ["ignored: unknown message type \"Teleport\"", "ignored: unknown message type \"gyro\""])
    #expect(rig.number("messages") == messages && rig.number("bad-frames") == 0)
    rig.receive("nonsense%^%\r\n")
    #expect(rig.number("bad-frames") == 1 && rig.notes.last?.hasPrefix("dropped: no #$# in a message") == true)
  }

  @Test func `keep-alives are sent at the interval that the car requests`() {
    var rig = CarRig.ready()
    let start = rig.now
    rig.receive("ConnectionTest#$#0.5%^%\r\n")
    rig.run(for: 2 * .second)
    #expect(rig.times(since: start, "ConnectionTest") == [0, 500, 1000, 1500, 2000])
    rig.receive("ConnectionTest#$#1e-9%^%\r\n")
    let fast = rig.now
    rig.run(for: .second)
    #expect((10...12).contains(rig.times(since: fast, "ConnectionTest").count))
    rig.receive("ConnectionTest#$#nan%^%\r\nConnectionTestStop#$#%^%\r\n")
    let stop = rig.now
    rig.run(for: 5 * .second)
    #expect(rig.times(since: stop + .millisecond, "ConnectionTest").count <= 1)
  }

  @Test func `send-message requires permission and a valid text`() {
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
        Issue.record("\(text) was accepted")
        continue
      }
    }
    #expect(rig.writes.count == count)
  }

  @Test func `commands beyond the queue limit are rejected, and the others are executed`() {
    var rig = CarRig.ready(["allow-messages": .bool(true), "status-interval": .float(0)])
    let ids = (0..<40).map { rig.act(.sendMessage, ["text": .string(String($0))]) }
    rig.run(for: 5 * .second)
    let done = ids.filter { rig.isDone($0) }
    #expect(done.count == CarSendQueue.maxCommands + 1 && ids.allSatisfy { rig.isDone($0) || rig.code($0) == "busy" })
  }
}
