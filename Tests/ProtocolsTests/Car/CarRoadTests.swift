import Peers
import Testing

@testable import Protocols

/// The machine drives the simulated car, which is as bad as the original: whatever ends the driving, the wheels stand still.
@Suite struct CarRoadTests {
  static let ways: [(name: String, lose: @Sendable (inout CarRoad) -> Void)] = [
    ("the driver lets go", { $0.give(.leaseEnded("done")) }),
    ("the client stalls", { $0.run(for: 320 * .millisecond) }),
    ("somebody says stop", { _ = $0.act(.stop) }),
    ("another mode is chosen", { _ = $0.set("mode", .string("7")) }),
    (
      "the car falls behind",
      { road in
        road.isBehind = true
        road.drive(0.4, 0, for: 50 * .millisecond)
        road.isBehind = false
      }
    ),
    ("the daemon is stopping", { $0.give(.stopping) }),
    ("the car is shut down", { _ = $0.act(.shutDown) }),
    (
      "the daemon dies",
      { road in
        let words = road.wills.last??.dead ?? []
        road.runWithoutDaemon(saying: words, for: .second)
      }
    ),
    (
      "the daemon freezes",
      { road in
        let words = road.wills.last??.frozen ?? []
        road.runWithoutDaemon(saying: words, for: .second)
      }
    ),
  ]

  @Test(arguments: Self.ways.indices, [0, 1, 2, 6, 7, 8, 9]) func theWheelsStandStill(_ way: Int, _ mode: Int) {
    var road = CarRoad.driving(mode: mode)
    #expect(road.motors == "50.96 50.96" && road.lost.isEmpty && road.exceptions.isEmpty)
    let end = road.now
    Self.ways[way].lose(&road)
    let dies = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !dies { road.run(for: 80 * .millisecond) }
    #expect(road.motors == "0.00 0.00", "\(Self.ways[way].name) in mode \(mode)")
    #expect(road.told.contains { $0.at >= end && $0.text == "motors 0.00 0.00" })
    if !dies { road.run(for: 5 * .second) }
    #expect(road.motors == "0.00 0.00" && road.exceptions.isEmpty)
  }

  @Test(arguments: Self.ways.indices, [5, 10]) func aCarThatFollowsALineStandsStill(_ way: Int, _ mode: Int) {
    var road = CarRoad.driving(mode: mode)
    #expect(road.motors == "17.00 17.00" && road.lost.isEmpty)
    Self.ways[way].lose(&road)
    let isDead = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !isDead { road.run(for: 5 * .second) }
    #expect(road.motors == "0.00 0.00", "\(Self.ways[way].name) in mode \(mode)")
  }

  /// A car that was moving when somebody else put it into a mode in which Stop is broken.
  @Test(arguments: Self.ways.indices, [3, 4]) func whereStopIsBrokenTheWheelsStandStillAllTheSame(_ way: Int, _ mode: Int) {
    var road = CarRoad.driving(mode: mode)
    // What no client of ours would do: let it drive in mode 0 and change the mode while it moves.
    for text in [
      "ChosenMode#$#0%^%\r\n", "Continue#$#%^%\r\n", "Gyro#$# 0.400000; 0.000000; 0.000000%^%\r\n", "ChosenMode#$#\(mode)%^%\r\n",
    ] {
      road.runWithoutDaemon(saying: [LastWill.Message(Array(text.utf8))], for: 10 * .millisecond)
    }
    #expect(road.motors == "50.96 50.96" && road.car.mode == mode)
    Self.ways[way].lose(&road)
    let isDead = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !isDead { road.run(for: 5 * .second) }
    #expect(road.motors == "0.00 0.00", "\(Self.ways[way].name) in mode \(mode)")
  }

  @Test(arguments: Self.ways.indices) func theDocumentedCarStandsStill(_ way: Int) {
    var road = CarRoad.driving(.documented)
    #expect(road.motors == "50.96 50.96" && road.lost.isEmpty)
    Self.ways[way].lose(&road)
    let isDead = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !isDead { road.run(for: 5 * .second) }
    #expect(road.motors == "0.00 0.00", "\(Self.ways[way].name)")
  }

  @Test func aCutLinkIsWhatTheCarNeverNotices() {
    var road = CarRoad.driving()
    road.disconnect()
    road.run(for: 10 * .second)
    #expect(road.lost == ["gone"] && road.motors == "50.96 50.96", "only a person can stop it now")
  }

  @Test func everyTiltIsTakenForWhatItIs() {
    var road = CarRoad.driving()
    for (roll, pitch) in [(-0.4, -0.1), (-0.1, -0.4), (-0.4, -1e-7), (-0.4, 0), (-1e-7, -0.4), (0.4, -0.2), (-0.78, -1.39)] {
      road.drive(roll, pitch, for: 200 * .millisecond)
      let speeds = road.motors.split(separator: " ").compactMap { Double($0) }
      #expect(speeds.count == 2 && speeds.allSatisfy { abs($0) <= 101 }, "\(roll) \(pitch): \(road.motors)")
    }
    #expect(road.exceptions.isEmpty)
  }

  @Test func aSessionAsAPersonHasIt() {
    var road = CarRoad(.asBuilt, ["status-interval": .float(10)])
    road.start(for: 2 * .second)
    #expect(road.status == "ready" && road.text("mode") == "Tilt Steering" && road.number("tilt-rate") == 60)
    road.run(for: 3 * .second)
    #expect((road.number("motor-battery-voltage") ?? 0) > 6 && road.number("temperature") != nil)
    let infos = road.act(.modeInfo)
    road.run(for: 3 * .second)
    guard case .success(let report)? = road.results[infos]?.first else {
      Issue.record("\(String(describing: road.results[infos]))")
      return
    }
    #expect(report.rows.count == 11 && report.rows.allSatisfy { !$0[2].isEmpty })
    let mode = road.set("mode", .string("tilt, lights"))
    road.run(for: .second)
    #expect(road.isDone(mode) && road.car.mode == 1 && road.text("buttons-enabled") == "on" && road.car.lights == "low")
    let left = road.set("left-button", .bool(true))
    road.run(for: .second)
    #expect(road.isDone(left) && road.car.lights == "low left")
    let other = road.set("mode", .string("8"))
    road.run(for: .second)
    #expect(road.isDone(other) && road.car.lights == "low" && road.text("left-button") == "off")
    // Its camera starts, and it is deaf meanwhile.
    road.run(for: 2 * .second)
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    road.drive(0.4, 0, for: 2 * .second)
    #expect(road.motors == "50.96 50.96" && road.exceptions.isEmpty)
    road.give(.leaseEnded("done"))
    let refresh = road.act(.refresh)
    road.run(for: 2 * .second)
    #expect(road.isDone(refresh) && road.motors == "0.00 0.00")
    road.give(.stopping)
    road.run(for: 2 * .second)
    #expect(road.hasStopped && road.car.hasEnded && road.exceptions.isEmpty)
  }

  @Test func theCameraStartsAndTheCarHearsAgain() {
    var road = CarRoad()
    road.start(for: 2 * .second)
    let video = road.set("video", .bool(true))
    road.run(for: 10 * .second)
    #expect(road.isDone(video) && road.car.isStreaming && road.text("video") == "on")
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    road.drive(0.4, 0, for: .second)
    #expect(road.motors == "50.96 50.96" && road.lost.isEmpty)
    road.give(.leaseEnded("done"))
    road.run(for: .millisecond)
    #expect(road.motors == "0.00 0.00")
    let off = road.set("video", .bool(false))
    road.run(for: .second)
    #expect(road.isDone(off) && !road.car.isStreaming)
  }

  @Test(arguments: [CarFault.Kind.split, .coalesce, .comma, .ansi, .longModes, .endless, .warn, .flat, .oddStatus, .oddGyro, .messageMarks])
  func troubleOfTheCarLosesNothingElse(_ kind: CarFault.Kind) {
    var road = CarRoad(.asBuilt, ["status-interval": .float(5)], faults: [CarFault(kind)])
    road.start(for: 2 * .second)
    road.run(for: 20 * .second)
    #expect(road.status == "ready" && road.number("tilt-rate") == 60 && road.text("mode") != nil, "\(kind)")
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    road.drive(0.4, 0, for: 2 * .second)
    #expect(road.motors == "50.96 50.96" && road.lost.isEmpty, "\(kind)")
    road.give(.leaseEnded("done"))
    road.run(for: .second)
    #expect(road.motors == "0.00 0.00")
  }

  /// It sleeps for half a second now and then, and finds all at once what came meanwhile, cut where its read ends.
  @Test(arguments: [3, 7, 20, 50]) func aCarThatLagsStandsStillOnceItHears(_ reads: Int) {
    for time in [200, 500, 900] as [Int64] {
      var road = CarRoad(faults: [CarFault(.lag, .every(reads), duration: time * .millisecond)])
      road.start(for: 2 * .second)
      road.run(for: 2 * .second)
      for _ in 0..<5 {
        road.give(.leaseBegan(deadline: 300 * .millisecond))
        road.drive(0.4, 0, for: 1100 * .millisecond)
        road.give(.leaseEnded("done"))
        road.run(for: 3 * .second)
        #expect(road.told.contains { $0.text == "motors 50.96 50.96" })
        #expect(road.motors == "0.00 0.00" && road.car.isStopped, "every \(reads) reads, \(time) ms")
      }
    }
  }

  @Test func aCarThatSomebodyElseHoldsIsSilent() {
    var road = CarRoad(.asBuilt, faults: [CarFault(.held)])
    road.start(for: 2 * .second)
    road.run(for: 4 * .second)
    #expect(road.status == "silent" && road.fault == CarSession.silence)
  }
}
