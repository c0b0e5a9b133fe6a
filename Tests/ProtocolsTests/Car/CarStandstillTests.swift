import Peers
import Testing

@testable import Protocols

/// A car that may be driving is not reported as stopped until it has confirmed Stop.
@Suite struct CarStandstillTests {
  private static func expectUnconfirmed(_ simulation: CarSimulation, _ place: SourceLocation = #_sourceLocation) {
    for name in ["running", "roll", "pitch", "yaw"] {
      #expect(
        simulation.absence(name)?.hasSuffix("the car may still be driving") == true
          || simulation.absence(name)?.hasSuffix("it may still be driving") == true, "\(name)", sourceLocation: place)
    }
    #expect(simulation.fault?.contains("may still be driving") == true, "\(simulation.fault ?? "-")", sourceLocation: place)
  }

  /// The car does not notice, drives on, and does not serve the next connection.
  @Test func `after a link is lost while driving, the car is not reported as stopped`() {
    var simulation = CarSimulation.driving()
    simulation.disconnect()
    Self.expectUnconfirmed(simulation)
    #expect(simulation.status == "waiting")
    let early = simulation.act(.stop)
    #expect(simulation.refusal(early) == "not confirmed: the car may still be driving; gone")
    simulation.connect()
    Self.expectUnconfirmed(simulation)
    let greeting = simulation.act(.stop)
    simulation.run(for: 3 * .second)
    #expect(simulation.refusal(greeting).hasPrefix("not confirmed: the car may still be driving"))
    simulation.run(for: 10 * .second)
    #expect(simulation.motors == "50.96 50.96" && simulation.status == "silent")
    Self.expectUnconfirmed(simulation)
    for name in ["mode", "mode-number", "left-button", "video"] { #expect(simulation.absence(name) == CarSession.silentMessage, "\(name)") }
    let stop = simulation.act(.stop)
    simulation.run(for: 3 * .second)
    #expect(simulation.refusal(stop).hasPrefix("not confirmed: the car may still be driving") && simulation.motors == "50.96 50.96")
  }

  /// That a car has not confirmed Stop is known after a restart of the daemon, and disconnecting it shows a warning.
  @Test func `an unconfirmed car is reported after a restart of the daemon`() {
    var simulation = CarSimulation.driving()
    #expect(simulation.disk["driven"] != nil)
    simulation.disconnect()
    var next = CarSimulation()
    next.disk = simulation.disk
    next.give(.started(restored: next.disk, wall: WallTime(microseconds: 0)))
    next.give(.linkChanged(.main, .down("disconnected on request")))
    #expect(next.fault == CarStandstill.drivenMessage && next.absence("running") == CarStandstill.unconfirmed)
    next.start(for: 2 * .second)
    #expect(next.text("running") == "off" && next.fault == nil && next.disk["driven"] == nil)
    // That the car was silent is known after the link is lost, too: another client may drive it.
    var silent = CarSimulation(.asBuilt, faults: [CarFault(.held)])
    silent.start(for: 2 * .second)
    silent.run(for: 4 * .second)
    silent.disconnect("disconnected on request")
    #expect(silent.fault == CarStandstill.silentMessage && silent.absence("running") == CarStandstill.unconfirmed)
  }

  @Test func `a car that serves another client is not reported as stopped`() {
    var simulation = CarSimulation(.asBuilt, faults: [CarFault(.held)])
    simulation.start(for: 2 * .second)
    #expect(
      simulation.absence("running")?.contains("may still be driving") == true
        && simulation.absence("mode") == "the car has not responded yet")
    simulation.run(for: 4 * .second)
    Self.expectUnconfirmed(simulation)
    let stop = simulation.act(.stop)
    simulation.run(for: 3 * .second)
    #expect(
      simulation.refusal(stop).hasPrefix("not confirmed: the car may still be driving")
        && simulation.absence("mode") == CarSession.silentMessage)
  }

  /// The program of the car is restarted by hand; its next messages count.
  @Test func `a car that responds again is stopped and confirms it`() {
    var simulation = CarSimulation.driving()
    simulation.disconnect()
    simulation.car = AutoTTCar()
    simulation.connect()
    simulation.run(for: 3 * .second)
    #expect(
      simulation.status == "ready" && simulation.fault == nil && simulation.text("running") == "off"
        && simulation.text("mode") == "Tilt Steering")
    #expect(simulation.absence("roll") == "not driven" && simulation.reports.contains { $0.text == "frame Stop" })
  }

  @Test func `stop completes when the car has confirmed it`() {
    var simulation = CarSimulation.driving()
    let stop = simulation.act(.stop)
    #expect(
      simulation.results[stop] == nil && simulation.absence("running") == CarStandstill.unconfirmed && simulation.motors == "0.00 0.00")
    simulation.run(for: .second)
    #expect(simulation.isDone(stop) && simulation.text("running") == "off" && simulation.fault == nil)
  }

  /// The kernel accepts the messages, but the car does not receive them.
  @Test func `lost segments are not a confirmation`() {
    var simulation = CarSimulation.driving()
    simulation.surroundings.delaySegments()
    simulation.give(.leaseEnded("the driver let go"))
    let stop = simulation.act(.stop)
    simulation.run(for: 4 * .second)
    #expect(simulation.refusal(stop).hasPrefix("not confirmed: the car may still be driving") && simulation.motors == "50.96 50.96")
    Self.expectUnconfirmed(simulation)
    #expect(simulation.status == "unconfirmed")
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(simulation.lost.last == "the car has not confirmed Stop: it may still be driving")
    simulation.deliverSegments()
    simulation.run(for: 6 * .second)
    #expect(
      simulation.motors == "0.00 0.00" && simulation.status == "ready" && simulation.fault == nil && simulation.text("running") == "off")
  }

  /// A client disconnects the device while the car does not receive: the warning outlives the session.
  @Test(arguments: [true, false]) func `the warning outlives the session unless the car has confirmed Stop`(_ receives: Bool) {
    var simulation = CarSimulation.driving()
    if !receives { simulation.surroundings.delaySegments() }
    simulation.give(.stopping)
    simulation.run(for: 2 * .second)
    #expect(simulation.hasStopped && simulation.fault == (receives ? nil : CarStandstill.drivenMessage))
  }

  // MARK: A program that hangs

  @Test func `a hung program is detected, and the car is stopped once it reads again`() {
    var simulation = CarSimulation(faults: [CarFault(.lag, .after(5 * .second), duration: 20 * .second)])
    simulation.start(for: 2 * .second)
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    simulation.drive(0.4, 0, for: 8 * .second)
    #expect(simulation.lost == ["the car no longer responds: its program may have hung; Stop is repeated until it responds"])
    #expect(simulation.motors == "50.96 50.96")
    simulation.run(for: 3 * .second)
    Self.expectUnconfirmed(simulation)
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(simulation.lost.count == 2)
    simulation.run(for: 25 * .second)
    #expect(
      simulation.motors == "0.00 0.00" && simulation.text("running") == "off" && simulation.fault == nil && simulation.exceptions.isEmpty)
  }

  @Test(arguments: [0, 6, 9]) func `while the car is driven its modes are requested, but not its status`(_ mode: Int) {
    var rig = CarRig.driving(["status-interval": .float(1)], mode: mode, for: 10 * .second)
    let start = rig.now
    rig.drive(for: 10 * .second)
    #expect((8...10).contains(rig.times(since: start, "Modes").count) && rig.times(since: start, "Status").isEmpty && rig.lost.isEmpty)
    for word in rig.writes where word.at >= start && !word.text.hasPrefix("Gyro") {
      #expect(!rig.writes.contains { $0.text.hasPrefix("Gyro") && abs($0.at - word.at) < 50 * .millisecond })
    }
    rig.respondsToModes = false
    rig.drive(for: 2_600 * .millisecond)
    #expect(rig.lost.count == 1 && rig.lost.last?.contains("its program may have hung") == true && rig.types().last != "Gyro")
  }

  @Test func `a hung program is detected while the car drives autonomously`() {
    var rig = CarRig.driving(mode: 5, for: 2 * .second)
    rig.respondsToModes = false
    rig.drive(for: 2 * .second)
    #expect(rig.lost.count == 1 && rig.lost.last?.contains("its program may have hung") == true)
  }

  // MARK: Begin of a lease

  /// The car is busy with a status request for a second: after connecting, every 30 s, and on refresh.
  @Test(arguments: [0, 100, 500, 900] as [Int64]) func `a lease that begins during a status request is kept`(_ wait: Int64) {
    for isPoll in [true, false] {
      var simulation = CarSimulation(.asBuilt, ["status-interval": .float(isPoll ? 5 : 0)])
      simulation.start(for: 2 * .second)
      if isPoll {
        while simulation.machine.router.features.status.deadline == nil { simulation.run(for: 10 * .millisecond) }
      } else {
        _ = simulation.act(.refresh)
      }
      simulation.run(for: wait * .millisecond)
      simulation.give(.leaseBegan(deadline: 300 * .millisecond))
      simulation.drive(0.4, 0, for: 2 * .second)
      #expect(
        simulation.lost.isEmpty && simulation.motors == "50.96 50.96" && simulation.exceptions.isEmpty, "\(wait) ms, \(simulation.lost)")
      simulation.give(.leaseEnded("done"))
      simulation.run(for: .second)
      #expect(simulation.motors == "0.00 0.00" && simulation.text("running") == "off")
    }
  }

  /// In these modes the camera starts for two seconds, in which the car ignores commands.
  @Test(arguments: [5, 6, 7, 8, 9, 10]) func `a lease that begins directly after a mode change is kept`(_ mode: Int) {
    var simulation = CarSimulation()
    simulation.start(for: 2 * .second)
    let chosen = simulation.set("mode", .string(String(mode)))
    simulation.run(for: 200 * .millisecond)
    #expect(simulation.isDone(chosen))
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    simulation.drive(0.4, 0, for: 5 * .second)
    #expect(simulation.lost.isEmpty && simulation.motors != "0.00 0.00" && simulation.text("running") == "on")
    simulation.give(.leaseEnded("done"))
    simulation.run(for: 3 * .second)
    #expect(simulation.motors == "0.00 0.00" && simulation.text("running") == "off")
  }
}
