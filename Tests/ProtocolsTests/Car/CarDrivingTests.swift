import Testing

@testable import Protocols

/// Driving, in virtual time: whatever ends the lease, Stop is the next thing that the car hears, in the same turn.
@Suite struct CarDrivingTests {
  /// Stop is said now, alone, and twice more, and the car is asked to confirm it; nothing else follows.
  static func expectStop(_ rig: inout CarRig, from start: Instant, words: [String] = ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"]) {
    #expect(rig.writes.first { $0.at >= start && !$0.text.hasPrefix("Gyro") }?.at == start)
    let tilts = rig.tilts.count
    rig.run(for: 2 * .second)
    #expect(rig.words(since: start) == words && rig.tilts.count == tilts)
    #expect(rig.text("running") == "off" && rig.absence("roll") == "not driven")
  }

  @Test func theFirstSetPointLetsTheCarDriveAndTravelsAPauseBehind() {
    var rig = CarRig.ready()
    let start = rig.now
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.words(since: start) == [] && rig.status == "driving" && rig.absence("roll") == "no set-point")
    let first = rig.tilt(0.4, 0.2)
    #expect(rig.words(since: start) == ["Continue#$#"] && rig.text("running") == "on" && rig.isDone(first))
    rig.run(for: 49 * .millisecond)
    #expect(rig.tilts.isEmpty)
    rig.run(for: .millisecond)
    #expect(rig.tilts == [" 0.400000; 0.200000; 0.000000"])
    #expect(rig.number("roll") == 0.4 && rig.number("pitch") == 0.2 && rig.number("yaw") == 0)
  }

  @Test func withoutALeaseNothingMoves() {
    var rig = CarRig.ready()
    let start = rig.now
    let tilt = rig.tilt(0.4, 0)
    let go = rig.act(.proceed)
    rig.run(for: .second)
    #expect(rig.code(tilt) == "no-lease" && rig.code(go) == "no-lease" && rig.types(since: start).isEmpty)
  }

  @Test func beforeTheCarHasAskedForTiltNobodyDrives() {
    var rig = CarRig(["status-interval": .float(0)])
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the link is not up yet")
    rig.start()
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car has not responded yet")
    rig.hear(CarVector.modes)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car has not requested tilt yet: wait, or set tilt-rate in the configuration")
    rig.hear("Gyro#$#0.05%^%")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 3 && rig.status == "driving")
  }

  @Test func aConfiguredRateNeedsNoQuestionOfTheCar() {
    var rig = CarRig(["tilt-rate": .float(50), "status-interval": .float(0)])
    rig.start()
    rig.hear(CarVector.modes)
    rig.run(for: .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: .second)
    #expect(rig.lost.isEmpty && rig.tilts.count > 40)
  }

  // MARK: Every way of losing the lease

  @Test func aHolderThatGivesUp() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.give(.leaseEnded("the driver let go"))
    #expect(rig.times(since: end, "Stop") == [0] && rig.lost.isEmpty)
    Self.expectStop(&rig, from: end)
    #expect(rig.times(since: end, "Stop") == [0, 60, 120])
  }

  @Test func aClientThatStalls() {
    var rig = CarRig.driving()
    let last = rig.now - .second / 60
    rig.run(for: 300 * .millisecond)
    #expect(rig.lost == ["no set-point for 300 ms"] && rig.status == "ready")
    Self.expectStop(&rig, from: last + 300 * .millisecond)
  }

  @Test func aCarThatDoesNotAcknowledge() {
    var rig = CarRig.driving()
    rig.behind = "the other side has not acknowledged the last 3000 bytes"
    let end = rig.now
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.lost == [rig.behind ?? ""] && rig.error(tilt) == .notConnected(rig.behind ?? ""))
    // What it has heard of all that shows when it answers.
    Self.expectStop(
      &rig, from: end, words: ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#", "Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"])
  }

  @Test func aCarThatWantsNoTiltAnyMore() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.hear("GyroStop#$#%^%\r\n")
    #expect(rig.lost == ["the car stopped accepting tilt (GyroStop)"] && rig.absence("tilt-rate")?.contains("GyroStop") == true)
    Self.expectStop(&rig, from: end)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car does not accept tilt (GyroStop): wait until it requests it again")
    rig.hear(CarVector.gyro)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 2 && rig.number("tilt-rate") == 60)
  }

  @Test func aLinkThatIsLostIsToldStopWhenItIsBack() {
    var rig = CarRig.driving()
    rig.disconnect()
    #expect(
      rig.lost == ["gone"] && rig.absence("running") == CarStandstill.unconfirmed && rig.fault == CarStandstill.leftDriving)
    let count = rig.writes.count
    rig.run(for: 2 * .second)
    #expect(rig.writes.count == count && rig.machine.nextWake == nil)
    let start = rig.now
    rig.connect()
    rig.run(for: .second)
    #expect(rig.words(since: start) == ["Stop#$#", "Modes#$#", "MainView#$#Entered"])
  }

  @Test func aLinkThatTakesNothingIsResetAfterASecond() {
    var rig = CarRig.driving()
    rig.takesWrites = false
    _ = rig.tilt(0.4, 0)
    rig.run(for: 999 * .millisecond)
    #expect(rig.lost == ["no set-point for 300 ms"] && rig.resets.isEmpty)
    rig.run(for: .millisecond)
    #expect(rig.resets == ["write timeout"])
  }

  @Test func aWordAndATiltThatAreBothLateHaveTheirTurnsAtOnce() {
    var rig = CarRig.driving()
    // A word was said just now, so that the next one has to wait; then the link takes a tilt too late for it.
    let first = rig.act(.proceed)
    rig.drive(for: 60 * .millisecond)
    #expect(rig.words().last == "Continue#$#" && rig.isDone(first))
    let second = rig.act(.modeInfo, ["mode": .string("1")])
    rig.drive(for: 90 * .millisecond)
    rig.takesWrites = false
    rig.drive(for: 200 * .millisecond)
    let start = rig.now
    rig.restoreWrites()
    #expect(rig.machine.nextWake ?? .max > rig.now, "what is due was said; to be woken for it again and again helps nobody")
    #expect(rig.types(since: start) == ["Gyro"])
    rig.run(for: 50 * .millisecond)
    #expect(rig.words(since: start) == ["InfoModes#$#1"] && rig.error(second) == nil)
  }

  @Test func aDaemonThatSleptWhileTheLinkTookItsWriteKeepsTheLink() {
    var rig = CarRig.driving()
    rig.takesWrites = false
    rig.run(for: 20 * .millisecond)
    #expect(rig.outstanding != nil)
    rig.now += 60 * .second
    let end = rig.now
    rig.restoreWrites()
    #expect(rig.resets.isEmpty && rig.lost == ["no set-point for 300 ms"])
    Self.expectStop(&rig, from: end)
  }

  @Test func whileTheLinkHoldsATiltTheStopIsNextBehindIt() {
    var rig = CarRig.driving()
    rig.run(for: 20 * .millisecond)
    rig.takesWrites = false
    let ids = (0..<4).map { rig.tilt(0.1 * Double($0), 0) }
    rig.run(for: 20 * .millisecond)
    let count = rig.writes.count
    rig.give(.leaseEnded("the driver let go"))
    #expect(ids.allSatisfy { rig.code($0) == "lease-lost" } && rig.writes.count == count)
    rig.restoreWrites()
    #expect(rig.writes.count == count + 1 && rig.words().last == "Stop#$#")
    Self.expectStop(&rig, from: rig.now)
  }

  @Test func aStoppingDaemon() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.give(.stopping)
    #expect(rig.times(since: end, "Stop") == [0] && rig.lost == ["the link is being closed"] && rig.stopped == nil)
    rig.run(for: .second)
    #expect(rig.words(since: end) == ["Stop#$#", "Stop#$#", "Modes#$#", "Disconnect#$#"] && rig.stopped == end + 170 * .millisecond)
    #expect(rig.machine.nextWake == nil)
  }

  // MARK: Stop and go

  @Test func anybodyStopsTheCarAndOnlyContinueDrivesOn() {
    var rig = CarRig.driving()
    let end = rig.now
    let stop = rig.act(.stop)
    #expect(rig.results[stop] == nil && rig.words(since: end) == ["Stop#$#"] && rig.lost.isEmpty)
    #expect(rig.absence("running") == CarStandstill.unconfirmed)
    rig.drive(for: .second)
    #expect(rig.words(since: end) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"] && rig.times(since: end, "Gyro").isEmpty)
    #expect(rig.isDone(stop) && rig.text("running") == "off")
    // The handle is held all the same, and whoever asks is told.
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.lost.isEmpty && rig.report(tilt)?.text == "the car was stopped, but the lease is still held: use continue to drive again")
    let go = rig.act(.proceed)
    #expect(rig.isDone(go) && rig.text("running") == "on")
    let start = rig.now
    // What was asked for before the stop is forgotten.
    rig.run(for: 100 * .millisecond)
    #expect(rig.times(since: start, "Gyro").isEmpty)
    rig.drive(for: .second)
    #expect(rig.tilts.count > 90)
  }

  @Test func aFloodOfStopsIsOneStopAfterAnother() {
    var rig = CarRig.driving()
    let start = rig.now
    let ids = (0..<500).map { _ in
      rig.run(for: .millisecond)
      return rig.act(.stop)
    }
    rig.run(for: .second)
    #expect(rig.times(since: start, "Stop").count <= 13 && ids.allSatisfy { rig.results[$0]?.count == 1 })
    #expect(rig.times(since: start, "Stop").first == 1)
  }

  @Test func aStopEmptiesWhatWouldMoveTheCar() {
    var rig = CarRig.driving()
    _ = rig.act(.stop)
    let go = rig.act(.proceed)
    let stop = rig.act(.stop)
    rig.run(for: .second)
    #expect(
      rig.code(go) == "stopped" && rig.isDone(stop) && rig.words().suffix(2) == ["Stop#$#", "Modes#$#"]
        && rig.text("running") == "off")
  }

  @Test func aNewDriverGoesOnBehindTheOldOnesStops() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.give(.leaseEnded("done"))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: .second)
    #expect(rig.words(since: end) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#", "Continue#$#"])
    #expect(rig.times(since: end, "Continue") == [230] && (rig.times(since: end, "Gyro").first ?? 0) >= 280)
  }

  @Test func oneLeaseAfterAnotherEndsInStopAtOnce() {
    var rig = CarRig.driving()
    for _ in 0..<20 {
      rig.give(.leaseEnded("done"))
      #expect(rig.types().last == "Stop")
      rig.give(.leaseBegan(deadline: 300 * .millisecond))
      rig.drive(for: 400 * .millisecond)
      #expect(rig.types().last == "Gyro")
    }
  }

  @Test func whileTheCarIsStoppedOrSilentStopIsSaidToWhoeverIsThere() {
    var rig = CarRig(["status-interval": .float(0)])
    let down = rig.act(.stop)
    #expect(rig.error(down) == .notConnected("\(CarStandstill.unconfirmed); the link is not up yet"))
    rig.start()
    rig.run(for: 6 * .second)
    let silent = rig.act(.stop)
    #expect(rig.status == "silent" && rig.results[silent] == nil && rig.words().last == "Stop#$#")
    rig.run(for: 2 * .second)
    #expect(rig.code(silent) == "not-confirmed" && rig.refusal(silent).hasPrefix(CarStandstill.unconfirmed))
  }

  // MARK: Words between tilts

  @Test func wordsTravelAloneWhileTiltsStream() {
    var rig = CarRig.driving(mode: 1)
    rig.hear("ButtonsOn#$#%^%\r\n")
    let start = rig.now
    let left = rig.set("left-button", .bool(true))
    rig.drive(for: .second)
    #expect(rig.isDone(left) && rig.text("left-button") == "on")
    guard let word = rig.writes.first(where: { $0.text.hasPrefix("Left") }) else {
      Issue.record("no button")
      return
    }
    #expect(word.at - start <= 100 * .millisecond)
    for tilt in rig.writes where tilt.text.hasPrefix("Gyro") { #expect(abs(tilt.at - word.at) >= 50 * .millisecond) }
    #expect(rig.times(since: start, "Gyro").count >= 40)
  }

  @Test func aFloodOfWordsDoesNotDrownTheTilts() {
    var rig = CarRig.driving()
    rig.hear("ConnectionTest#$#0.001%^%\r\n")
    let start = rig.now
    let infos = rig.act(.modeInfo)
    rig.drive(for: 4 * .second)
    #expect(rig.times(since: start, "Gyro").count >= 100 && rig.lost.isEmpty && rig.results[infos]?.count == 1)
    for word in rig.writes where word.at >= start && !word.text.hasPrefix("Gyro") {
      #expect(!rig.writes.contains { $0.text.hasPrefix("Gyro") && abs($0.at - word.at) < 50 * .millisecond })
    }
  }

  @Test func withATiltMissingNothingIsGuessed() {
    var rig = CarRig.driving()
    let id = rig.act(.tilt, ["roll": .float(0.1)])
    #expect(rig.error(id) == .invalid(argument: "pitch", "is missing: give it in rad"))
    let flood = (0..<200).map { rig.tilt(Double($0) / 1000, 0) }
    rig.run(for: 100 * .millisecond)
    #expect(flood.allSatisfy { rig.isDone($0) } && rig.number("roll") == 0.199)
  }

  @Test func whatACancelledSetPointAskedForStillCounts() {
    var rig = CarRig.driving()
    _ = rig.tilt(0.5, 0)
    let id = rig.tilt(0.6, 0)
    rig.give(.cancelled(id))
    rig.run(for: 50 * .millisecond)
    #expect(rig.results[id] == nil && rig.number("roll") == 0.6)
  }
}
