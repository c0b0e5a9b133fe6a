import Peers
import Testing

@testable import Protocols

/// What is said of a car that may be driving: nothing that passes for a car that stands, until the car itself has confirmed it.
@Suite struct CarStandstillTests {
  private static func expectDoubt(_ road: CarRoad, _ place: SourceLocation = #_sourceLocation) {
    for name in ["running", "roll", "pitch", "yaw"] {
      #expect(
        road.absence(name)?.hasSuffix("the car may still be driving") == true
          || road.absence(name)?.hasSuffix("it may still be driving") == true, "\(name)", sourceLocation: place)
    }
    #expect(road.fault?.contains("may still be driving") == true, "\(road.fault ?? "-")", sourceLocation: place)
  }

  /// The car notices nothing, drives on, and does not serve the connection that follows.
  @Test func aLinkThatIsCutWhileTheCarDrives() {
    var road = CarRoad.driving()
    road.disconnect()
    Self.expectDoubt(road)
    #expect(road.status == "waiting")
    let early = road.act(.stop)
    #expect(road.refusal(early) == "not confirmed: the car may still be driving; gone")
    road.connect()
    Self.expectDoubt(road)
    let greeting = road.act(.stop)
    road.run(for: 3 * .second)
    #expect(road.refusal(greeting).hasPrefix("not confirmed: the car may still be driving"))
    road.run(for: 10 * .second)
    #expect(road.motors == "50.96 50.96" && road.status == "silent")
    Self.expectDoubt(road)
    for name in ["mode", "mode-number", "left-button", "video"] { #expect(road.absence(name) == CarSession.silence, "\(name)") }
    let stop = road.act(.stop)
    road.run(for: 3 * .second)
    #expect(road.refusal(stop).hasPrefix("not confirmed: the car may still be driving") && road.motors == "50.96 50.96")
  }

  /// What was driven and has not confirmed Stop is known to the daemon that is started next; a person who disconnects it is warned.
  @Test func aCarThatWasLeftDrivingIsKnownAfterARestart() {
    var road = CarRoad.driving()
    #expect(road.disk["driven"] != nil)
    road.disconnect()
    var next = CarRoad()
    next.disk = road.disk
    next.give(.started(restored: next.disk, wall: WallTime(microseconds: 0)))
    next.give(.linkChanged(.main, .down("disconnected on request")))
    #expect(next.fault == CarStandstill.leftDriving && next.absence("running") == CarStandstill.unconfirmed)
    next.start(for: 2 * .second)
    #expect(next.text("running") == "off" && next.fault == nil && next.disk["driven"] == nil)
    // Silence outlives the link, too: another client may drive it.
    var silent = CarRoad(.asBuilt, faults: [CarFault(.held)])
    silent.start(for: 2 * .second)
    silent.run(for: 4 * .second)
    silent.disconnect("disconnected on request")
    #expect(silent.fault == CarStandstill.leftSilent && silent.absence("running") == CarStandstill.unconfirmed)
  }

  @Test func aCarThatAnotherClientHolds() {
    var road = CarRoad(.asBuilt, faults: [CarFault(.held)])
    road.start(for: 2 * .second)
    #expect(road.absence("running")?.contains("may still be driving") == true && road.absence("mode") == "the car has not responded yet")
    road.run(for: 4 * .second)
    Self.expectDoubt(road)
    let stop = road.act(.stop)
    road.run(for: 3 * .second)
    #expect(
      road.refusal(stop).hasPrefix("not confirmed: the car may still be driving") && road.absence("mode") == CarSession.silence)
  }

  /// Its program is started again by hand: what it says then counts.
  @Test func aCarThatSpeaksAgainIsStoppedAndConfirmsIt() {
    var road = CarRoad.driving()
    road.disconnect()
    road.car = AutoTTCar()
    road.connect()
    road.run(for: 3 * .second)
    #expect(road.status == "ready" && road.fault == nil && road.text("running") == "off" && road.text("mode") == "Tilt Steering")
    #expect(road.absence("roll") == "not driven" && road.told.contains { $0.text == "frame Stop" })
  }

  @Test func stopIsAnsweredByTheCarItself() {
    var road = CarRoad.driving()
    let stop = road.act(.stop)
    #expect(road.results[stop] == nil && road.absence("running") == CarStandstill.unconfirmed && road.motors == "0.00 0.00")
    road.run(for: .second)
    #expect(road.isDone(stop) && road.text("running") == "off" && road.fault == nil)
  }

  /// The kernel takes what is said, and the car hears nothing of it.
  @Test func aHoleInTheNetworkIsNoConfirmation() {
    var road = CarRoad.driving()
    road.around.openHole()
    road.give(.leaseEnded("the driver let go"))
    let stop = road.act(.stop)
    road.run(for: 4 * .second)
    #expect(road.refusal(stop).hasPrefix("not confirmed: the car may still be driving") && road.motors == "50.96 50.96")
    Self.expectDoubt(road)
    #expect(road.status == "unconfirmed")
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(road.lost.last == "the car has not confirmed Stop: it may still be driving")
    road.closeHole()
    road.run(for: 6 * .second)
    #expect(road.motors == "0.00 0.00" && road.status == "ready" && road.fault == nil && road.text("running") == "off")
  }

  /// A person disconnects, and the car is not there to hear it: the warning outlives the session.
  @Test(arguments: [true, false]) func theEndOfASessionClaimsNoMore(_ hears: Bool) {
    var road = CarRoad.driving()
    if !hears { road.around.openHole() }
    road.give(.stopping)
    road.run(for: 2 * .second)
    #expect(road.hasStopped && road.fault == (hears ? nil : CarStandstill.leftDriving))
  }

  // MARK: A program that hangs

  @Test func aCarWhoseProgramHangsIsNoticedAndStoppedOnceItHears() {
    var road = CarRoad(faults: [CarFault(.lag, .after(5 * .second), duration: 20 * .second)])
    road.start(for: 2 * .second)
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    road.drive(0.4, 0, for: 8 * .second)
    #expect(road.lost == ["the car no longer responds: its program may hang; Stop is repeated until it responds"])
    #expect(road.motors == "50.96 50.96")
    road.run(for: 3 * .second)
    Self.expectDoubt(road)
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(road.lost.count == 2)
    road.run(for: 25 * .second)
    #expect(road.motors == "0.00 0.00" && road.text("running") == "off" && road.fault == nil && road.exceptions.isEmpty)
  }

  @Test(arguments: [0, 6, 9]) func whileSomebodyDrivesTheCarIsAskedForItsModesAndNeverForItsStatus(_ mode: Int) {
    var rig = CarRig.driving(["status-interval": .float(1)], mode: mode, for: 10 * .second)
    let start = rig.now
    rig.drive(for: 10 * .second)
    #expect((8...10).contains(rig.times(since: start, "Modes").count) && rig.times(since: start, "Status").isEmpty && rig.lost.isEmpty)
    for word in rig.writes where word.at >= start && !word.text.hasPrefix("Gyro") {
      #expect(!rig.writes.contains { $0.text.hasPrefix("Gyro") && abs($0.at - word.at) < 50 * .millisecond })
    }
    rig.answersModes = false
    rig.drive(for: 2_600 * .millisecond)
    #expect(rig.lost.count == 1 && rig.lost.last?.contains("its program may hang") == true && rig.types().last != "Gyro")
  }

  @Test func aCarThatDrivesByItselfAndHangsIsNoticed() {
    var rig = CarRig.driving(mode: 5, for: 2 * .second)
    rig.answersModes = false
    rig.drive(for: 2 * .second)
    #expect(rig.lost.count == 1 && rig.lost.last?.contains("its program may hang") == true)
  }

  // MARK: Beginning to drive

  /// The car looks for its status a second long: after connecting, every 30 s, and when it is asked.
  @Test(arguments: [0, 100, 500, 900] as [Int64]) func whoBeginsToDriveWhileTheCarLooksKeepsTheLease(_ wait: Int64) {
    for isPoll in [true, false] {
      var road = CarRoad(.asBuilt, ["status-interval": .float(isPoll ? 5 : 0)])
      road.start(for: 2 * .second)
      if isPoll {
        while road.machine.router.features.status.deadline == nil { road.run(for: 10 * .millisecond) }
      } else {
        _ = road.act(.refresh)
      }
      road.run(for: wait * .millisecond)
      road.give(.leaseBegan(deadline: 300 * .millisecond))
      road.drive(0.4, 0, for: 2 * .second)
      #expect(road.lost.isEmpty && road.motors == "50.96 50.96" && road.exceptions.isEmpty, "\(wait) ms, \(road.lost)")
      road.give(.leaseEnded("done"))
      road.run(for: .second)
      #expect(road.motors == "0.00 0.00" && road.text("running") == "off")
    }
  }

  /// The camera of these modes takes two seconds, in which the car is deaf.
  @Test(arguments: [5, 6, 7, 8, 9, 10]) func whoBeginsToDriveRightBehindAModeKeepsTheLease(_ mode: Int) {
    var road = CarRoad()
    road.start(for: 2 * .second)
    let chosen = road.set("mode", .string(String(mode)))
    road.run(for: 200 * .millisecond)
    #expect(road.isDone(chosen))
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    road.drive(0.4, 0, for: 5 * .second)
    #expect(road.lost.isEmpty && road.motors != "0.00 0.00" && road.text("running") == "on")
    road.give(.leaseEnded("done"))
    road.run(for: 3 * .second)
    #expect(road.motors == "0.00 0.00" && road.text("running") == "off")
  }
}
