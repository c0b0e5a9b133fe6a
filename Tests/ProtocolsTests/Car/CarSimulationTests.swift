import Peers
import Testing

@testable import Protocols

/// The machine drives the simulated car, which has the faults of the original: whatever ends driving, the wheels stop.
@Suite struct CarSimulationTests {
  static let ways: [(name: String, lose: @Sendable (inout CarSimulation) -> Void)] = [
    ("the driver releases the lease", { $0.give(.leaseEnded("done")) }),
    ("the client stops sending setpoints", { $0.run(for: 320 * .millisecond) }),
    ("a client stops the car", { _ = $0.act(.stop) }),
    ("another mode is chosen", { _ = $0.set("mode", .string("7")) }),
    (
      "the car does not acknowledge",
      { simulation in
        simulation.rejectsTilts = true
        simulation.drive(0.4, 0, for: 50 * .millisecond)
        simulation.rejectsTilts = false
      }
    ),
    ("the daemon is stopping", { $0.give(.stopping) }),
    ("the car is shut down", { _ = $0.act(.shutDown) }),
    (
      "the daemon dies",
      { simulation in
        let words = simulation.wills.last??.dead ?? []
        simulation.runWithoutDaemon(sending: words, for: .second)
      }
    ),
    (
      "the daemon freezes",
      { simulation in
        let words = simulation.wills.last??.frozen ?? []
        simulation.runWithoutDaemon(sending: words, for: .second)
      }
    ),
  ]

  @Test(arguments: Self.ways.indices, [0, 1, 2, 6, 7, 8, 9]) func `the wheels stand still`(_ way: Int, _ mode: Int) {
    var simulation = CarSimulation.driving(mode: mode)
    #expect(simulation.motors == "50.96 50.96" && simulation.lost.isEmpty && simulation.exceptions.isEmpty)
    let end = simulation.now
    Self.ways[way].lose(&simulation)
    let dies = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !dies { simulation.run(for: 80 * .millisecond) }
    #expect(simulation.motors == "0.00 0.00", "\(Self.ways[way].name) in mode \(mode)")
    #expect(simulation.reports.contains { $0.at >= end && $0.text == "motors 0.00 0.00" })
    if !dies { simulation.run(for: 5 * .second) }
    #expect(simulation.motors == "0.00 0.00" && simulation.exceptions.isEmpty)
  }

  @Test(arguments: Self.ways.indices, [5, 10]) func `an autonomous car stands still`(_ way: Int, _ mode: Int) {
    var simulation = CarSimulation.driving(mode: mode)
    #expect(simulation.motors == "17.00 17.00" && simulation.lost.isEmpty)
    Self.ways[way].lose(&simulation)
    let isDead = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !isDead { simulation.run(for: 5 * .second) }
    #expect(simulation.motors == "0.00 0.00", "\(Self.ways[way].name) in mode \(mode)")
  }

  /// A car that was moving when another client chose a mode in which Stop fails.
  @Test(arguments: Self.ways.indices, [3, 4]) func `the wheels stand still in a mode in which Stop fails`(_ way: Int, _ mode: Int) {
    var simulation = CarSimulation.driving(mode: mode)
    // The daemon never does this: drive in mode 0, and change the mode while the car moves.
    for text in [
      "ChosenMode#$#0%^%\r\n", "Continue#$#%^%\r\n", "Gyro#$# 0.400000; 0.000000; 0.000000%^%\r\n", "ChosenMode#$#\(mode)%^%\r\n",
    ] {
      simulation.runWithoutDaemon(sending: [LastWill.Message(Array(text.utf8))], for: 10 * .millisecond)
    }
    #expect(simulation.motors == "50.96 50.96" && simulation.car.mode == mode)
    Self.ways[way].lose(&simulation)
    let isDead = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !isDead { simulation.run(for: 5 * .second) }
    #expect(simulation.motors == "0.00 0.00", "\(Self.ways[way].name) in mode \(mode)")
  }

  @Test(arguments: Self.ways.indices) func `a car of the documented dialect stands still`(_ way: Int) {
    var simulation = CarSimulation.driving(.documented)
    #expect(simulation.motors == "50.96 50.96" && simulation.lost.isEmpty)
    Self.ways[way].lose(&simulation)
    let isDead = Self.ways[way].name.hasPrefix("the daemon dies") || Self.ways[way].name.hasPrefix("the daemon freezes")
    if !isDead { simulation.run(for: 5 * .second) }
    #expect(simulation.motors == "0.00 0.00", "\(Self.ways[way].name)")
  }

  @Test func `the car drives on when its link is cut`() {
    var simulation = CarSimulation.driving()
    simulation.disconnect()
    simulation.run(for: 10 * .second)
    #expect(simulation.lost == ["gone"] && simulation.motors == "50.96 50.96", "only a person can stop it now")
  }

  @Test func `the car interprets every tilt correctly`() {
    var simulation = CarSimulation.driving()
    for (roll, pitch) in [(-0.4, -0.1), (-0.1, -0.4), (-0.4, -1e-7), (-0.4, 0), (-1e-7, -0.4), (0.4, -0.2), (-0.78, -1.39)] {
      simulation.drive(roll, pitch, for: 200 * .millisecond)
      let speeds = simulation.motors.split(separator: " ").compactMap { Double($0) }
      #expect(speeds.count == 2 && speeds.allSatisfy { abs($0) <= 101 }, "\(roll) \(pitch): \(simulation.motors)")
    }
    #expect(simulation.exceptions.isEmpty)
  }

  @Test func `a complete session works`() {
    var simulation = CarSimulation(.asBuilt, ["status-interval": .float(10)])
    simulation.start(for: 2 * .second)
    #expect(simulation.status == "ready" && simulation.text("mode") == "Tilt Steering" && simulation.number("tilt-rate") == 60)
    simulation.run(for: 3 * .second)
    #expect((simulation.number("motor-battery-voltage") ?? 0) > 6 && simulation.number("temperature") != nil)
    let infos = simulation.act(.modeInfo)
    simulation.run(for: 3 * .second)
    guard case .success(let report)? = simulation.results[infos]?.first else {
      Issue.record("\(String(describing: simulation.results[infos]))")
      return
    }
    #expect(report.rows.count == 11 && report.rows.allSatisfy { !$0[2].isEmpty })
    let mode = simulation.set("mode", .string("tilt, lights"))
    simulation.run(for: .second)
    #expect(
      simulation.isDone(mode) && simulation.car.mode == 1 && simulation.text("buttons-enabled") == "on" && simulation.car.lights == "low")
    let left = simulation.set("left-button", .bool(true))
    simulation.run(for: .second)
    #expect(simulation.isDone(left) && simulation.car.lights == "low left")
    let other = simulation.set("mode", .string("8"))
    simulation.run(for: .second)
    #expect(simulation.isDone(other) && simulation.car.lights == "low" && simulation.text("left-button") == "off")
    // Its camera starts, and the car ignores commands.
    simulation.run(for: 2 * .second)
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    simulation.drive(0.4, 0, for: 2 * .second)
    #expect(simulation.motors == "50.96 50.96" && simulation.exceptions.isEmpty)
    simulation.give(.leaseEnded("done"))
    let refresh = simulation.act(.refresh)
    simulation.run(for: 2 * .second)
    #expect(simulation.isDone(refresh) && simulation.motors == "0.00 0.00")
    simulation.give(.stopping)
    simulation.run(for: 2 * .second)
    #expect(simulation.hasStopped && simulation.car.hasEnded && simulation.exceptions.isEmpty)
  }

  @Test func `the car accepts commands again after its camera has started`() {
    var simulation = CarSimulation()
    simulation.start(for: 2 * .second)
    let video = simulation.set("video", .bool(true))
    simulation.run(for: 10 * .second)
    #expect(simulation.isDone(video) && simulation.car.isStreaming && simulation.text("video") == "on")
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    simulation.drive(0.4, 0, for: .second)
    #expect(simulation.motors == "50.96 50.96" && simulation.lost.isEmpty)
    simulation.give(.leaseEnded("done"))
    simulation.run(for: .millisecond)
    #expect(simulation.motors == "0.00 0.00")
    let off = simulation.set("video", .bool(false))
    simulation.run(for: .second)
    #expect(simulation.isDone(off) && !simulation.car.isStreaming)
  }

  @Test func `a car that reads late that the camera is switched on is freed`() {
    var simulation = CarSimulation(.asBuilt, ["status-interval": .float(6)])
    simulation.start(for: 8 * .second)
    simulation.surroundings.delaySegments()
    let video = simulation.set("video", .bool(true))
    simulation.run(for: 20 * .second)
    #expect(simulation.error(video) == .timeout(milliseconds: 15_000) && simulation.fault?.contains("restart the car's program") == true)
    #expect(simulation.error(simulation.set("video", .bool(true))) == CarCamera.noPicture)
    #expect(simulation.text("video") == nil)
    // The car now waits for a picture, and has not read that the camera is switched off.
    simulation.deliverSegments()
    simulation.run(for: .second)
    let mode = simulation.set("mode", .string("2"))
    simulation.run(for: 20 * .second)
    #expect(simulation.isDone(mode) && simulation.car.mode == 2 && simulation.fault == nil && simulation.status == "ready")
    #expect(simulation.text("video") == "off")
  }

  @Test(arguments: [
    CarFault.Kind.split, .coalesce, .comma, .ansi, .longModes, .endless, .warn, .flat, .oddStatus, .oddGyro, .delimitersInMessage,
  ])
  func `a fault of the car affects nothing else`(_ kind: CarFault.Kind) {
    var simulation = CarSimulation(.asBuilt, ["status-interval": .float(5)], faults: [CarFault(kind)])
    simulation.start(for: 2 * .second)
    simulation.run(for: 20 * .second)
    #expect(simulation.status == "ready" && simulation.number("tilt-rate") == 60 && simulation.text("mode") != nil, "\(kind)")
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    simulation.drive(0.4, 0, for: 2 * .second)
    #expect(simulation.motors == "50.96 50.96" && simulation.lost.isEmpty, "\(kind)")
    simulation.give(.leaseEnded("done"))
    simulation.run(for: .second)
    #expect(simulation.motors == "0.00 0.00")
  }

  /// The car sometimes pauses for half a second, and then reads everything that arrived at once, up to the limit of its read.
  @Test(arguments: [3, 7, 20, 50]) func `a car that reads late stands still once it has read Stop`(_ reads: Int) {
    for time in [200, 500, 900] as [Int64] {
      var simulation = CarSimulation(faults: [CarFault(.lag, .every(reads), duration: time * .millisecond)])
      simulation.start(for: 2 * .second)
      simulation.run(for: 2 * .second)
      for _ in 0..<5 {
        simulation.give(.leaseBegan(deadline: 300 * .millisecond))
        simulation.drive(0.4, 0, for: 1100 * .millisecond)
        simulation.give(.leaseEnded("done"))
        simulation.run(for: 3 * .second)
        #expect(simulation.reports.contains { $0.text == "motors 50.96 50.96" })
        #expect(simulation.motors == "0.00 0.00" && simulation.car.isStopped, "every \(reads) reads, \(time) ms")
      }
    }
  }

  @Test func `a car that serves another client is silent`() {
    var simulation = CarSimulation(.asBuilt, faults: [CarFault(.held)])
    simulation.start(for: 2 * .second)
    simulation.run(for: 4 * .second)
    #expect(simulation.status == "silent" && simulation.fault == CarSession.silentMessage)
  }
}
