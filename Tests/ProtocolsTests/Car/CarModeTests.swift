import Testing

@testable import Protocols

/// Modes and buttons: choosing stops the car, and where Stop is broken another mode makes it whole.
@Suite struct CarModeTests {
  @Test func aModeIsChosenByNameInAnyCaseOrByNumber() {
    for (text, number) in [("tilt, lights", 1), ("SELF STEERING", 10), ("7", 7), (" Stop sign ", 6), ("Tilt, Traffic rules, Light", 9)] {
      var rig = CarRig.ready()
      #expect(rig.text("mode") == "Tilt Steering" && rig.number("mode-number") == 0)
      let start = rig.now
      let id = rig.set("mode", .string(text))
      rig.run(for: .second)
      // Whether it has heard all that was said is asked where it may not have.
      let question: [String] = number < 5 ? [] : ["Modes#$#"]
      let said: [String] = ["Stop#$#", "Stop#$#", "Modes#$#", "ChosenMode#$#\(number)"] + question
      #expect(rig.isDone(id) && rig.words(since: start) == said, "\(text)")
      #expect(rig.times(since: start, "Stop") == [0, 60] && rig.times(since: start, "ChosenMode") == [170])
      #expect(rig.number("mode-number") == Double(number) && rig.text("running") == "off")
    }
  }

  @Test func unknownAndAmbiguousModesAreRefusedWithTheKnownOnes() {
    var rig = CarRig.ready()
    for text in ["Tilt", "11", "-1", "", "+1", "0x1", "fly"] {
      let id = rig.set("mode", .string(text))
      #expect(rig.refusal(id).contains("0 Tilt Steering; 1 Tilt, Lights;"), "\(text)")
    }
    rig.hear("Modes#$#Slow;;slow;7;0%^%")
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

  @Test func anEmptyListIsNoList() {
    var rig = CarRig.ready()
    rig.hear("Modes#$#%^%")
    #expect(rig.absence("modes") == "the car reported an empty list" && rig.text("mode") == "0")
    let id = rig.set("mode", .string("Fly"))
    #expect(rig.refusal(id).contains("give a number"))
  }

  @Test func whileSomebodyDrivesChoosingStopsTheCarUntilContinue() {
    var rig = CarRig.driving()
    let start = rig.now
    let id = rig.set("mode", .string("1"))
    rig.drive(for: .second)
    #expect(rig.isDone(id) && rig.lost.isEmpty && rig.text("running") == "off" && rig.times(since: start, "Gyro").isEmpty)
    #expect(rig.words(since: start) == ["Stop#$#", "Stop#$#", "Modes#$#", "ChosenMode#$#1"])
    _ = rig.act(.proceed)
    rig.drive(for: .second)
    #expect(rig.text("running") == "on" && rig.times(since: start, "Gyro").count > 50)
  }

  @Test(arguments: [3, 4]) func whereStopIsBrokenModeZeroStopsTheMotors(_ mode: Int) {
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
    #expect(rig.words(since: end) == words)

    rig = CarRig.driving(mode: mode)
    end = rig.now
    _ = rig.set("mode", .string("8"))
    rig.drive(for: 600 * .millisecond)
    #expect(
      rig.words(since: end) == ["Stop#$#", "ChosenMode#$#0", "Stop#$#", "Modes#$#", "ChosenMode#$#8", "Modes#$#"]
        && rig.number("mode-number") == 8)

    rig = CarRig.driving(mode: mode)
    end = rig.now
    rig.give(.stopping)
    rig.run(for: .second)
    #expect(rig.words(since: end) == ["Stop#$#", "ChosenMode#$#0", "Stop#$#", "Modes#$#", "Disconnect#$#"])
    #expect((rig.stopped ?? .max) - end < 1_500 * .millisecond)
  }

  @Test func theWillHasTheWordsOfTheModeBeforeTheCarIsInIt() {
    func words(_ messages: [LastWill.Message]) -> [String] {
      messages.map { String(decoding: $0.bytes.prefix { $0 != 0x23 }, as: UTF8.self) }
    }
    var rig = CarRig.ready()
    #expect(rig.lastWills.count == 1)
    #expect(
      words(rig.lastWills[0].dead) == ["Stop", "Stop", "Stop", "Disconnect"] && words(rig.lastWills[0].frozen) == ["Stop", "Stop", "Stop"])
    #expect(rig.lastWills[0].dead.map(\.pause) == [0, 60_000_000, 60_000_000, 60_000_000])
    _ = rig.set("mode", .string("3"))
    #expect(rig.lastWills.count == 2 && rig.words().last == "Stop#$#")
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

  @Test(arguments: [5, 10]) func aCarThatFollowsALineTakesNoTiltButTheHandleHolds(_ mode: Int) {
    var rig = CarRig.driving(mode: mode, for: 2 * .second)
    #expect(rig.tilts.isEmpty && rig.lost.isEmpty && rig.text("running") == "on" && rig.words().contains("Continue#$#"))
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.isDone(tilt) && rig.absence("roll") == "no set-point")
    rig.run(for: 400 * .millisecond)
    #expect(rig.lost == ["no set-point for 300 ms"])
    rig.run(for: .second)
    #expect(rig.words().suffix(4) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"])
  }

  /// Behind Continue this car may forget a Stop with all that it reads in one go; what it is told after an answer it hears.
  @Test func whereTheCarMayForgetAStopItIsSaidUntilTheCarAnswersAndOnceMore() {
    var rig = CarRig.driving(mode: 10, for: 100 * .millisecond)
    rig.answersModes = false
    rig.give(.leaseEnded("the driver let go"))
    rig.run(for: 200 * .millisecond)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    _ = rig.tilt(0, 0)
    rig.run(for: 60 * .millisecond)
    let end = rig.now
    rig.give(.leaseEnded("the driver let go"))
    rig.run(for: 4 * .second)
    let words = rig.words(since: end)
    #expect(Array(words.prefix(4)) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"])
    #expect(words.count { $0 == "Stop#$#" } > 5, "\(words)")
    #expect(rig.fault == "the car has not confirmed Stop: it may still be driving")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car has not confirmed Stop: it may still be driving" && rig.status == "unconfirmed")
    // It answers again: to what it was asked before the last Continue too, and that counts for nothing.
    rig.answersModes = true
    let answers = rig.now
    rig.hear(CarVector.modes)
    rig.run(for: 6 * .second)
    let said = rig.words(since: answers)
    #expect(said.indices.dropLast(3).contains { said[$0..<($0 + 4)] == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"] } && rig.fault == nil)
    #expect(rig.text("running") == "off")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.status == "driving")
  }

  /// The driver may begin at once; Continue waits until the car hears, and a car that never does is named.
  @Test(arguments: [9, 10]) func whoeverDrivesRightBehindAModeWaitsForTheCar(_ mode: Int) {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string(String(mode)))
    rig.run(for: 180 * .millisecond)
    #expect(rig.words().suffix(2) == ["Modes#$#", "ChosenMode#$#\(mode)"])
    // It is deaf while its camera starts.
    rig.answersModes = false
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.report(tilt)?.text == "the car is changing its mode: wait until it responds")
    rig.drive(for: 2 * .second)
    #expect(rig.lost.isEmpty && rig.status == "driving" && !rig.words().contains("Continue#$#") && rig.text("running") == "off")
    rig.answersModes = true
    rig.hear(CarVector.modes)
    rig.drive(for: .second)
    #expect(rig.words().contains("Continue#$#") && rig.text("running") == "on" && rig.lost.isEmpty)
  }

  @Test func aCarThatLostTheQuestionIsAskedAgain() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("9"))
    rig.run(for: 180 * .millisecond)
    rig.answersModes = false
    let asked = rig.now
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: 6 * .second)
    #expect(rig.lost.count == 1 && rig.lost.last?.hasPrefix("no response to the last command") == true)
    #expect(rig.words(since: asked).filter { $0 == "Modes#$#" }.count >= 4 && !rig.words().contains("Continue#$#"))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 2)
    rig.answersModes = true
    rig.run(for: 12 * .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.status == "driving")
  }

  /// The link breaks while Stop is owed: it is the first word over the next one.
  @Test func aStopThatWasNotConfirmedIsOwedToTheNextLink() {
    var rig = CarRig.driving(mode: 10, for: 100 * .millisecond)
    rig.answersModes = false
    _ = rig.act(.stop)
    rig.run(for: 400 * .millisecond)
    rig.disconnect()
    let back = rig.now
    rig.connect()
    rig.run(for: 100 * .millisecond)
    #expect(rig.words(since: back).first == "Stop#$#", "\(rig.words(since: back))")
  }

  @Test func aCarThatMayHaveForgottenStopIsLeftAsLateAsPossible() {
    var rig = CarRig.driving(mode: 5, for: 30 * .millisecond)
    rig.answersModes = false
    _ = rig.act(.stop)
    rig.give(.leaseEnded("the driver let go"))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    let end = rig.now
    rig.give(.stopping)
    rig.run(for: 2 * .second)
    #expect(rig.words(since: end).last == "Disconnect#$#" && (rig.stopped ?? .max) - end < 1_500 * .millisecond)
  }

  @Test func aCarThatDrivesByItselfIsAskedWhetherItIsThere() {
    var rig = CarRig.driving(mode: 5, for: 2 * .second)
    #expect(rig.words().count { $0 == "Modes#$#" } > 6)
    rig.behind = "the other side has not acknowledged the last 36 bytes"
    rig.drive(for: 600 * .millisecond)
    #expect(rig.lost.count == 1 && rig.lost[0].contains("acknowledge"), "\(rig.lost)")
  }

  // MARK: What the modes do

  @Test func oneTextIsAskedForAndKept() {
    var rig = CarRig.ready()
    let start = rig.now
    let first = rig.act(.modeInfo, ["mode": .string("tilt, lights")])
    rig.run(for: 100 * .millisecond)
    #expect(rig.words(since: start) == ["InfoModes#$#1"])
    rig.hear("InfoModes#$#Tilt, with \"lights\".%^%\r\n")
    #expect(rig.report(first)?.text == "Tilt, with \"lights\".")
    let second = rig.act(.modeInfo, ["mode": .string("1")])
    #expect(rig.report(second)?.text == "Tilt, with \"lights\"." && rig.types(since: start).count == 1)
  }

  @Test func allTextsAreAskedForOneByOne() {
    var rig = CarRig.ready()
    let start = rig.now
    let id = rig.act(.modeInfo)
    for number in 0..<11 {
      rig.run(for: 60 * .millisecond)
      #expect(rig.words(since: start).count == number + 1)
      rig.hear("InfoModes#$#about \(number)%^%\r\n")
    }
    let report = rig.report(id)
    #expect(report?.columns == ["number", "name", "description"] && report?.rows.count == 11)
    #expect(report?.rows[9] == ["9", "Tilt, Traffic rules, Light", "about 9"])
    #expect(rig.progress[id]?.last?.progress == 1 && rig.progress[id]?.count == 11)
  }

  @Test func aTextThatDoesNotComeIsATimeoutAndALateOneIsNotTakenForTheNext() {
    var rig = CarRig.ready()
    let first = rig.act(.modeInfo, ["mode": .string("0")])
    rig.run(for: 2 * .second)
    #expect(rig.error(first) == .timeout(milliseconds: 2000))
    let start = rig.now
    let second = rig.act(.modeInfo, ["mode": .string("1")])
    rig.run(for: .second)
    rig.hear("InfoModes#$#about 0%^%\r\n")
    #expect(rig.results[second] == nil && rig.notes.last == "ignored: unexpected description of a mode")
    rig.run(for: 1100 * .millisecond)
    #expect(rig.times(since: start, "InfoModes").count == 1)
    rig.hear("InfoModes#$#about 1%^%\r\n")
    #expect(rig.report(second)?.text == "about 1")
  }

  // MARK: Buttons

  @Test func buttonsAreForTheLightsInModesThatHaveThem() {
    for mode in 0...10 {
      var rig = CarRig.ready()
      _ = rig.set("mode", .string(String(mode)))
      rig.run(for: .second)
      rig.hear("ButtonsOn#$#%^%\r\n")
      let id = rig.set("left-button", .bool(true))
      rig.run(for: .second)
      if [1, 6, 8, 9].contains(mode) {
        #expect(rig.isDone(id) && rig.words().last == "LeftButtonTouchDown#$#")
      } else {
        #expect(
          rig.code(id) == "no-buttons" && rig.refusal(id).contains(mode == 3 || mode == 4 ? "bug" : "has no buttons"))
      }
    }
  }

  @Test func buttonsThatTheCarDoesNotWantAreRefused() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("1"))
    rig.run(for: .second)
    let early = rig.set("left-button", .bool(true))
    #expect(rig.refusal(early) == "the car does not accept buttons now" && rig.text("buttons-enabled") == "off")
    rig.hear(CarVector.buttons)
    #expect(rig.text("buttons-enabled") == "on" && rig.text("speech-enabled") == "off")
    let down = rig.set("right-button", .bool(true))
    rig.run(for: .second)
    let up = rig.set("right-button", .bool(false))
    rig.run(for: .second)
    #expect(rig.isDone(down) && rig.isDone(up) && rig.words().suffix(2) == ["RightButtonTouchDown#$#", "RightButtonTouchUp#$#"])
  }

  @Test func pressedButtonsAreLetGoBeforeAnotherMode() {
    var rig = CarRig.ready()
    _ = rig.set("mode", .string("1"))
    rig.run(for: .second)
    rig.hear("ButtonsOn#$#%^%\r\n")
    _ = rig.set("left-button", .bool(true))
    rig.run(for: .second)
    let start = rig.now
    _ = rig.set("right-button", .bool(true))
    _ = rig.set("mode", .string("2"))
    rig.run(for: .second)
    #expect(
      rig.words(since: start) == [
        "RightButtonTouchDown#$#", "Stop#$#", "Stop#$#", "Modes#$#", "LeftButtonTouchUp#$#", "RightButtonTouchUp#$#", "ChosenMode#$#2",
      ])
    #expect(rig.text("left-button") == "off" && rig.text("right-button") == "off")
  }

  @Test func asDocumentedTheButtonsAreADriversAndLetGoWithHim() {
    var rig = CarRig.ready(["dialect": .string("documented"), "status-interval": .float(0)])
    let early = rig.set("left-button", .bool(true))
    #expect(rig.refusal(early).contains("motion lease required") && rig.absence("buttons-enabled") == "not reported")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: 200 * .millisecond)
    let down = rig.set("left-button", .bool(true))
    rig.drive(for: 500 * .millisecond)
    #expect(rig.isDone(down) && rig.words().last == "LeftButtonTouchDownn#$#")
    let end = rig.now
    rig.give(.leaseEnded("done"))
    rig.run(for: .second)
    #expect(
      rig.words(since: end) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#", "LeftButtonTouchUpn#$#"] && rig.text("left-button") == "off")
  }
}
