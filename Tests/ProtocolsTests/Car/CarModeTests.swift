import Testing

@testable import Protocols

/// Modes and buttons. A mode change stops the car, also in modes in which Stop fails.
@Suite struct CarModeTests {
  @Test func `a mode is chosen by name, in any case, or by number`() {
    for (text, number) in [("tilt, lights", 1), ("SELF STEERING", 10), ("7", 7), (" Stop sign ", 6), ("Tilt, Traffic rules, Light", 9)] {
      var rig = CarRig.ready()
      #expect(rig.text("mode") == "Tilt Steering" && rig.number("mode-number") == 0)
      let start = rig.now
      let id = rig.set("mode", .string(text))
      rig.run(for: .second)
      // After commands that the car may have discarded, a response is requested.
      let request: [String] = number < 5 ? [] : ["Modes#$#"]
      let sent: [String] = ["Stop#$#", "Stop#$#", "Modes#$#", "ChosenMode#$#\(number)"] + request
      #expect(rig.isDone(id) && rig.messages(since: start) == sent, "\(text)")
      #expect(rig.times(since: start, "Stop") == [0, 60] && rig.times(since: start, "ChosenMode") == [170])
      #expect(rig.number("mode-number") == Double(number) && rig.text("running") == "off")
    }
  }

  @Test func `unknown and ambiguous modes are rejected with a list of modes`() {
    var rig = CarRig.ready()
    for text in ["Tilt", "11", "-1", "", "+1", "0x1", "fly"] {
      let id = rig.set("mode", .string(text))
      #expect(rig.refusal(id).contains("0 Tilt Steering; 1 Tilt, Lights;"), "\(text)")
    }
    rig.receive("Modes#$#Slow;;slow;7;0%^%")
    let empty = rig.set("mode", .string(" "))
    #expect(rig.refusal(empty).contains("the car has 0 Slow; 1 ; 2 slow"))
    let twice = rig.set("mode", .string("slow"))
    let both = rig.set("mode", .string("0"))
    #expect(rig.refusal(twice) == "\"slow\" is ambiguous: modes 0 and 2; give the number")
    #expect(rig.refusal(both) == "\"0\" is ambiguous: modes 4 and 0; give the number")
    let start = rig.now
    rig.run(for: .second)
    #expect(rig.types(since: start).isEmpty)
  }

  @Test func `an empty list of modes is withdrawn`() {
    var rig = CarRig.ready()
    rig.receive("Modes#$#%^%")
    #expect(rig.absence("modes") == "the car reported an empty list" && rig.text("mode") == "0")
    let id = rig.set("mode", .string("Fly"))
    #expect(rig.refusal(id).contains("give a number"))
  }

  @Test func `a mode change stops a driven car until continue`() {
    var rig = CarRig.driving()
    let start = rig.now
    let id = rig.set("mode", .string("1"))
    rig.drive(for: .second)
    #expect(rig.isDone(id) && rig.lost.isEmpty && rig.text("running") == "off" && rig.times(since: start, "Gyro").isEmpty)
    #expect(rig.messages(since: start) == ["Stop#$#", "Stop#$#", "Modes#$#", "ChosenMode#$#1"])
    _ = rig.act(.proceed)
    rig.drive(for: .second)
    #expect(rig.text("running") == "on" && rig.times(since: start, "Gyro").count > 50)
  }

  @Test(arguments: [3, 4]) func `in a mode in which Stop fails, mode 0 stops the motors`(_ mode: Int) {
    let words = ["Stop#$#", "ChosenMode#$#0", "Stop#$#", "Stop#$#", "Modes#$#"]
    var rig = CarRig.driving(mode: mode)
    #expect(rig.number("mode-number") == Double(mode))
    var end = rig.now
    rig.give(.leaseEnded("done"))
    CarDrivingTests.expectStop(&rig, from: end, words: words)
    #expect(rig.number("mode-number") == 0 && rig.text("mode") == "Tilt Steering")

    rig = CarRig.driving(mode: mode)
    end = rig.now
    _ = rig.act(.stop)
    rig.drive(for: 600 * .millisecond)
    #expect(rig.messages(since: end) == words)

    rig = CarRig.driving(mode: mode)
    end = rig.now
    _ = rig.set("mode", .string("8"))
    rig.drive(for: 600 * .millisecond)
    #expect(
      rig.messages(since: end) == ["Stop#$#", "ChosenMode#$#0", "Stop#$#", "Modes#$#", "ChosenMode#$#8", "Modes#$#"]
        && rig.number("mode-number") == 8)

    rig = CarRig.driving(mode: mode)
    end = rig.now
    rig.give(.stopping)
    rig.run(for: .second)
    #expect(rig.messages(since: end) == ["Stop#$#", "ChosenMode#$#0", "Stop#$#", "Modes#$#", "Disconnect#$#"])
    #expect((rig.stopped ?? .max) - end < 1_500 * .millisecond)
  }

  @Test func `the last-will frames are replaced before the mode changes`() {
    func words(_ messages: [LastWill.Message]) -> [String] {
      messages.map { String(decoding: $0.bytes.prefix { $0 != 0x23 }, as: UTF8.self) }
    }
    var rig = CarRig.ready()
    #expect(rig.lastWills.count == 1)
    #expect(
      words(rig.lastWills[0].dead) == ["Stop", "Stop", "Stop", "Disconnect"] && words(rig.lastWills[0].frozen) == ["Stop", "Stop", "Stop"])
    #expect(rig.lastWills[0].dead.map(\.pause) == [0, 60_000_000, 60_000_000, 60_000_000])
    _ = rig.set("mode", .string("3"))
    #expect(rig.lastWills.count == 2 && rig.messages().last == "Stop#$#")
    #expect(words(rig.lastWills[1].dead) == ["Stop", "ChosenMode", "Stop", "Stop", "Disconnect"])
    #expect(words(rig.lastWills[1].frozen) == ["Stop", "ChosenMode", "Stop", "Stop"])
    rig.run(for: .second)
    _ = rig.set("mode", .string("4"))
    rig.run(for: .second)
    _ = rig.act(.stop)
    rig.run(for: .second)
    #expect(rig.lastWills.count == 3 && words(rig.lastWills[2].frozen) == ["Stop", "Stop", "Stop"])
    rig.disconnect()
    rig.connect()
    #expect(rig.lastWills.count == 4)
  }

  @Test(arguments: [5, 10]) func `in an autonomous mode setpoints refresh the deadman timer, and no tilt is sent`(_ mode: Int) {
    var rig = CarRig.driving(mode: mode, for: 2 * .second)
    #expect(rig.tilts.isEmpty && rig.lost.isEmpty && rig.text("running") == "on" && rig.messages().contains("Continue#$#"))
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.isDone(tilt) && rig.absence("roll") == "no setpoint")
    rig.run(for: 400 * .millisecond)
    #expect(rig.lost == ["no setpoint for 300 ms"])
    rig.run(for: .second)
    #expect(rig.messages().suffix(4) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"])
  }

  /// After Continue this car may discard a Stop in the same read; it does not discard messages after a response.
  @Test func `a Stop that the car may discard is repeated until it responds, and once more`() {
    var rig = CarRig.driving(mode: 10, for: 100 * .millisecond)
    rig.respondsToModes = false
    rig.give(.leaseEnded("the driver let go"))
    rig.run(for: 200 * .millisecond)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    _ = rig.tilt(0, 0)
    rig.run(for: 60 * .millisecond)
    let end = rig.now
    rig.give(.leaseEnded("the driver let go"))
    rig.run(for: 4 * .second)
    let words = rig.messages(since: end)
    #expect(Array(words.prefix(4)) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"])
    #expect(words.count { $0 == "Stop#$#" } > 5, "\(words)")
    #expect(rig.fault == "the car has not confirmed Stop: it may still be driving")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car has not confirmed Stop: it may still be driving" && rig.status == "unconfirmed")
    // The responses to requests before the last Continue confirm nothing.
    rig.respondsToModes = true
    let responseStart = rig.now
    rig.receive(CarVector.modes)
    rig.run(for: 6 * .second)
    let sent = rig.messages(since: responseStart)
    #expect(sent.indices.dropLast(3).contains { sent[$0..<($0 + 4)] == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"] } && rig.fault == nil)
    #expect(rig.text("running") == "off")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.status == "driving")
  }

  /// The lease is granted at once; Continue waits until the car responds, and a car that never does is a fault.
  @Test(arguments: [9, 10]) func `after a mode change Continue waits until the car responds`(_ mode: Int) {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string(String(mode)))
    rig.run(for: 180 * .millisecond)
    #expect(rig.messages().suffix(2) == ["Modes#$#", "ChosenMode#$#\(mode)"])
    // The car ignores commands while its camera starts.
    rig.respondsToModes = false
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.report(tilt)?.text == "the car is changing its mode: wait until it responds")
    rig.drive(for: 2 * .second)
    #expect(rig.lost.isEmpty && rig.status == "driving" && !rig.messages().contains("Continue#$#") && rig.text("running") == "off")
    rig.respondsToModes = true
    rig.receive(CarVector.modes)
    rig.drive(for: .second)
    #expect(rig.messages().contains("Continue#$#") && rig.text("running") == "on" && rig.lost.isEmpty)
  }

  @Test func `a request without a response is repeated`() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("9"))
    rig.run(for: 180 * .millisecond)
    rig.respondsToModes = false
    let start = rig.now
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: 6 * .second)
    #expect(rig.lost.count == 1 && rig.lost.last?.hasPrefix("no response to the last command") == true)
    #expect(rig.messages(since: start).filter { $0 == "Modes#$#" }.count >= 4 && !rig.messages().contains("Continue#$#"))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 2)
    rig.respondsToModes = true
    rig.run(for: 12 * .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.status == "driving")
  }

  /// The link is lost while Stop is not confirmed: Stop is the first message over the next one.
  @Test func `a Stop that was not confirmed is sent first over the next link`() {
    var rig = CarRig.driving(mode: 10, for: 100 * .millisecond)
    rig.respondsToModes = false
    _ = rig.act(.stop)
    rig.run(for: 400 * .millisecond)
    rig.disconnect()
    let back = rig.now
    rig.connect()
    rig.run(for: 100 * .millisecond)
    #expect(rig.messages(since: back).first == "Stop#$#", "\(rig.messages(since: back))")
  }

  @Test func `Disconnect is sent as late as possible if Stop is not confirmed`() {
    var rig = CarRig.driving(mode: 5, for: 30 * .millisecond)
    rig.respondsToModes = false
    _ = rig.act(.stop)
    rig.give(.leaseEnded("the driver let go"))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    let end = rig.now
    rig.give(.stopping)
    rig.run(for: 2 * .second)
    #expect(rig.messages(since: end).last == "Disconnect#$#" && (rig.stopped ?? .max) - end < 1_500 * .millisecond)
  }

  @Test func `liveness is checked while the car drives autonomously`() {
    var rig = CarRig.driving(mode: 5, for: 2 * .second)
    #expect(rig.messages().count { $0 == "Modes#$#" } > 6)
    rig.tiltFailure = "the other side has not acknowledged the last 36 bytes"
    rig.drive(for: 600 * .millisecond)
    #expect(rig.lost.count == 1 && rig.lost[0].contains("acknowledge"), "\(rig.lost)")
  }

  // MARK: Descriptions

  @Test func `the description of a mode is requested once and cached`() {
    var rig = CarRig.ready()
    let start = rig.now
    let first = rig.act(.modeInfo, ["mode": .string("tilt, lights")])
    rig.run(for: 100 * .millisecond)
    #expect(rig.messages(since: start) == ["InfoModes#$#1"])
    rig.receive("InfoModes#$#Tilt, with \"lights\".%^%\r\n")
    #expect(rig.report(first)?.text == "Tilt, with \"lights\".")
    let second = rig.act(.modeInfo, ["mode": .string("1")])
    #expect(rig.report(second)?.text == "Tilt, with \"lights\"." && rig.types(since: start).count == 1)
  }

  @Test func `all descriptions are requested one by one`() {
    var rig = CarRig.ready()
    let start = rig.now
    let id = rig.act(.modeInfo)
    for number in 0..<11 {
      rig.run(for: 60 * .millisecond)
      #expect(rig.messages(since: start).count == number + 1)
      rig.receive("InfoModes#$#about \(number)%^%\r\n")
    }
    let report = rig.report(id)
    #expect(report?.columns == ["number", "name", "description"] && report?.rows.count == 11)
    #expect(report?.rows[9] == ["9", "Tilt, Traffic rules, Light", "about 9"])
    #expect(rig.progress[id]?.last?.progress == 1 && rig.progress[id]?.count == 11)
  }

  @Test func `a missing description is a timeout, and a late one is not mistaken for the next`() {
    var rig = CarRig.ready()
    let first = rig.act(.modeInfo, ["mode": .string("0")])
    rig.run(for: 2 * .second)
    #expect(rig.error(first) == .timeout(milliseconds: 2000))
    let start = rig.now
    let second = rig.act(.modeInfo, ["mode": .string("1")])
    rig.run(for: .second)
    rig.receive("InfoModes#$#about 0%^%\r\n")
    #expect(rig.results[second] == nil && rig.notes.last == "ignored: unexpected description of a mode")
    rig.run(for: 1100 * .millisecond)
    #expect(rig.times(since: start, "InfoModes").count == 1)
    rig.receive("InfoModes#$#about 1%^%\r\n")
    #expect(rig.report(second)?.text == "about 1")
  }

  // MARK: Buttons

  @Test func `buttons are accepted in modes that have lights`() {
    for mode in 0...10 {
      var rig = CarRig.ready()
      _ = rig.set("mode", .string(String(mode)))
      rig.run(for: .second)
      rig.receive("ButtonsOn#$#%^%\r\n")
      let id = rig.set("left-button", .bool(true))
      rig.run(for: .second)
      if [1, 6, 8, 9].contains(mode) {
        #expect(rig.isDone(id) && rig.messages().last == "LeftButtonTouchDown#$#")
      } else {
        #expect(
          rig.code(id) == "no-buttons" && rig.refusal(id).contains(mode == 3 || mode == 4 ? "bug" : "has no buttons"))
      }
    }
  }

  @Test func `buttons that the car does not accept are rejected`() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("1"))
    rig.run(for: .second)
    let early = rig.set("left-button", .bool(true))
    #expect(rig.refusal(early) == "the car does not accept buttons now" && rig.text("buttons-enabled") == "off")
    rig.receive(CarVector.buttons)
    #expect(rig.text("buttons-enabled") == "on" && rig.text("speech-enabled") == "off")
    let down = rig.set("right-button", .bool(true))
    rig.run(for: .second)
    let up = rig.set("right-button", .bool(false))
    rig.run(for: .second)
    #expect(rig.isDone(down) && rig.isDone(up) && rig.messages().suffix(2) == ["RightButtonTouchDown#$#", "RightButtonTouchUp#$#"])
  }

  @Test func `pressed buttons are released before a mode change`() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("1"))
    rig.run(for: .second)
    rig.receive("ButtonsOn#$#%^%\r\n")
    _ = rig.set("left-button", .bool(true))
    rig.run(for: .second)
    let start = rig.now
    _ = rig.set("right-button", .bool(true))
    _ = rig.set("mode", .string("2"))
    rig.run(for: .second)
    #expect(
      rig.messages(since: start) == [
        "RightButtonTouchDown#$#", "Stop#$#", "Stop#$#", "Modes#$#", "LeftButtonTouchUp#$#", "RightButtonTouchUp#$#", "ChosenMode#$#2",
      ])
    #expect(rig.text("left-button") == "off" && rig.text("right-button") == "off")
  }

  @Test func `in the documented dialect buttons require the lease, and are released with it`() {
    var rig = CarRig.ready(["dialect": .string("documented"), "status-interval": .float(0)])
    let early = rig.set("left-button", .bool(true))
    #expect(rig.refusal(early).contains("motion lease required") && rig.absence("buttons-enabled") == "not reported")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: 200 * .millisecond)
    let down = rig.set("left-button", .bool(true))
    rig.drive(for: 500 * .millisecond)
    #expect(rig.isDone(down) && rig.messages().last == "LeftButtonTouchDownn#$#")
    let end = rig.now
    rig.give(.leaseEnded("done"))
    rig.run(for: .second)
    #expect(
      rig.messages(since: end) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#", "LeftButtonTouchUpn#$#"] && rig.text("left-button") == "off"
    )
  }
}
