import Testing

@testable import Peers
@testable import Protocols

/// Driving, in virtual time: whatever ends the lease, the last message to the VESC is zero current.
@Suite struct VESCMotionTests {
  static let options: [String: Value] = ["allow-motion": .bool(true), "max-motor-current": .float(20), "max-duty-cycle": .float(50)]

  static func driving(_ model: VESCModel = .v600, _ more: [String: Value] = [:]) throws -> VESCRig {
    var rig = try VESCRig(model, options.merging(more) { $1 })
    rig.start()
    rig.run(for: 5 * .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    return rig
  }

  /// Drives with 20 setpoints per second.
  static func drive(
    _ rig: inout VESCRig, _ name: String = "target-current", _ value: Double = 8, for time: Nanoseconds, from id: CommandID = 100
  ) {
    for step in 0..<Int(time / (50 * .millisecond)) {
      rig.set(name, .float(value), id: id + CommandID(step))
      rig.run(for: 50 * .millisecond)
    }
  }

  static func expectStopped(_ rig: inout VESCRig) {
    rig.run(for: 30 * .millisecond)
    #expect(rig.vesc.motorCommands.last?.command == .current(0) && rig.vesc.motorCurrent == 0)
    rig.run(for: 25 * .second)
    #expect(rig.vesc.speed == 0 && rig.vesc.motorCurrent == 0)
    #expect(rig.vesc.motorCommands.last?.command == .current(0))
  }

  @Test func `without allow-motion there are no motion properties`() throws {
    var rig = try VESCRig()
    rig.start()
    rig.run(for: 2 * .second)
    #expect(!rig.machine.schema.properties.contains { $0.access == .motion })
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost == ["motion is disabled: set allow-motion = true in the configuration"])
    rig.run(for: 2 * .second)
    #expect(rig.vesc.motorCommands.isEmpty && rig.receivedCount(.alive) == 0)
  }

  @Test func `without a lease nothing moves`() throws {
    var rig = try VESCRig(.v600, Self.options)
    rig.start()
    rig.run(for: 2 * .second)
    rig.set("target-current", .float(5), id: 1)
    #expect(rig.code(1) == "no-lease" && rig.absence("target-current") == "not driven")
    rig.run(for: 2 * .second)
    #expect(rig.vesc.motorCommands.isEmpty && rig.receivedCount(.alive) == 0)
  }

  @Test func `last-will frames are set while the motor may turn under the lease`() throws {
    var rig = try Self.driving()
    let stop = VESCSetPoint.none.frame(canID: nil)
    #expect(rig.wills.count == 1 && rig.wills[0]?.dead.map(\.bytes) == [stop, stop, stop] && rig.wills[0]?.frozen == rig.wills[0]?.dead)
    Self.drive(&rig, for: .second)
    #expect(rig.wills.count == 1)
    rig.give(.leaseEnded("client disconnected"))
    #expect(rig.wills.count == 1, "the stops are not out yet")
    rig.run(for: .second)
    #expect(rig.wills.count == 2 && rig.wills[1] == nil)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.wills.count == 3 && rig.wills[2] != nil)
    rig.disconnect()
    #expect(rig.wills.count == 4 && rig.wills[3] == nil)
  }

  @Test func `the lease is refused until the VESC has responded`() throws {
    var rig = try VESCRig(.v600, Self.options)
    rig.deliversWrites = false
    rig.start()
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost == ["the VESC has not responded yet"])
    rig.run(for: 3 * .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == VESCPollingTests.off)
    rig.disconnect()
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "gone")
  }

  @Test func `only ALIVE is sent until the first setpoint`() throws {
    var rig = try Self.driving()
    #expect(rig.status == "driving")
    rig.run(for: 250 * .millisecond)
    #expect(rig.receivedCount(.alive) == 3 && rig.vesc.motorCommands.isEmpty && rig.lost.isEmpty)
    rig.run(for: 100 * .millisecond)
    #expect(rig.lost == ["no setpoint for 300 ms"])
    #expect(rig.vesc.motorCommands.map(\.command) == [.current(0), .current(0)])
  }

  @Test func `setpoints are sent at once and repeated`() throws {
    var rig = try Self.driving()
    rig.run(for: 20 * .millisecond)
    rig.set("target-current", .float(8), id: 1)
    #expect(rig.isDone(1) && rig.vesc.motorCommands.map(\.command) == [.current(8)] && rig.number("target-current") == 8)
    let start = rig.now
    rig.run(for: 250 * .millisecond)
    #expect(rig.vesc.motorCommands.map { ($0.at - start) / .millisecond } == [0, 100, 200])
    rig.set("brake-current", .float(3), id: 2)
    #expect(rig.vesc.motorCommands.last?.command == .brake(3))
    #expect(rig.number("brake-current") == 3 && rig.absence("target-current") == "brake-current is active")
    rig.run(for: VESCMotion.minInterval)
    rig.set("target-duty", .float(-20), id: 3)
    #expect(rig.vesc.motorCommands.last?.command == .duty(-0.2) && rig.absence("brake-current") == "target-duty is active")
    rig.run(for: VESCMotion.minInterval)
    rig.set("handbrake-current", .float(4), id: 4)
    #expect(rig.vesc.motorCommands.last?.command == .handbrake(4))
    #expect((1...4).allSatisfy { rig.isDone($0) })
  }

  @Test func `a duty cycle cannot bypass the current limit`() throws {
    var rig = try VESCRig(.v600, ["allow-motion": .bool(true), "max-motor-current": .float(1)])
    rig.start()
    rig.run(for: 5 * .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.set("target-duty", .float(100), id: 1)
    #expect(rig.code(1) == "no-duty")
    rig.run(for: 100 * .millisecond)
    #expect(rig.vesc.motorCommands.isEmpty && rig.absence("target-duty") == "no setpoint")
    // A rejected setpoint is not sent.
    rig.run(for: 300 * .millisecond)
    #expect(rig.lost == ["no setpoint for 300 ms"])
    let property = VESCProperty.targetDuty.rawValue
    #expect(try Self.driving().machine.schema.properties[property].range == -50...50)
  }

  @Test func `polling continues while the board is driven`() throws {
    var rig = try Self.driving(.v600, ["rate": .float(50)])
    let missed = rig.machine.router.requests.polling.missed
    let polls = rig.machine.router.requests.polling.statistics.polls
    Self.drive(&rig, for: 10 * .second)
    #expect(rig.machine.router.requests.polling.missed == missed && rig.machine.router.requests.polling.statistics.polls - polls >= 499)
    #expect(rig.vesc.speed > 3 && rig.lost.isEmpty && !rig.vesc.isTimedOut)
    #expect((100..<300).allSatisfy { rig.isDone($0) })
    #expect(abs((rig.number("speed") ?? 0) - rig.vesc.speed * 3.6) < 1)
    #expect(rig.number("lateness-p99") == 0)
  }

  @Test func `a client that stops sending setpoints loses the lease`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: 4 * .second)
    #expect(rig.vesc.speed > 1)
    let last = rig.now - 50 * .millisecond
    rig.run(for: .second)
    #expect(rig.lost == ["no setpoint for 300 ms"] && rig.status == "polling")
    let zeros = rig.vesc.motorCommands.filter { $0.command == .current(0) }.map { ($0.at - last) / .millisecond }
    #expect(zeros == [300, 350, 400])
    #expect(rig.absence("target-current") == "not driven")
    rig.set("target-current", .float(5), id: 9)
    #expect(rig.code(9) == "no-lease")
    Self.expectStopped(&rig)
  }

  @Test func `the end of a lease stops the motor at once`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, "target-duty", 40, for: 3 * .second)
    let end = rig.now
    rig.give(.leaseEnded("the driver let go"))
    #expect(rig.vesc.motorCommands.last?.command == .current(0) && rig.vesc.motorCommands.last?.at == end && rig.lost.isEmpty)
    rig.run(for: 200 * .millisecond)
    #expect(
      rig.vesc.motorCommands.suffix(3).allSatisfy { $0.command == .current(0) }
        && rig.vesc.motorCommands.suffix(4).first?.command == .duty(0.4))
    Self.expectStopped(&rig)
  }

  @Test func `a stopping daemon stops the motor first`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: 2 * .second)
    rig.give(.stopping)
    #expect(rig.lost == ["the link is being closed"] && !rig.hasStopped && rig.vesc.motorCommands.last?.command == .current(0))
    let polls = rig.machine.router.requests.polling.statistics.polls
    rig.run(for: 150 * .millisecond)
    #expect(rig.hasStopped && rig.machine.nextWake == nil && rig.machine.router.requests.polling.statistics.polls == polls)
    #expect(rig.vesc.motorCommands.suffix(3).allSatisfy { $0.command == .current(0) })
    Self.expectStopped(&rig)
  }

  @Test func `a lost link ends the lease, and zero current is the first message over the next one`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: 2 * .second)
    rig.disconnect()
    #expect(rig.lost == ["gone"])
    let sends = rig.sends.count
    rig.run(for: 300 * .millisecond)
    #expect(rig.sends.count == sends)
    rig.connect()
    #expect(rig.sends[sends].bytes == VESCSetPoint.none.frame(canID: nil))
    #expect(rig.vesc.motorCommands.last?.command == .current(0))
    Self.expectStopped(&rig)
  }

  @Test func `without a link the VESC releases the motor after its own timeout`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: 2 * .second)
    rig.disconnect()
    var quiet = Effects()
    rig.vesc.handle(.wake, at: rig.now + 1100 * .millisecond, &quiet)
    #expect(rig.vesc.isTimedOut && rig.vesc.motorCurrent == 0)
  }

  @Test func `a VESC that stops responding ends the lease`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: 2 * .second)
    rig.deliversWrites = false
    Self.drive(&rig, for: 2 * .second, from: 500)
    #expect(rig.lost == ["the VESC does not respond"])
    #expect(rig.sends.last { $0.bytes[2] == 6 }?.bytes == VESCSetPoint.none.frame(canID: nil))
  }

  /// Regression: zero current was sent to a VESC that did not respond, and never again.
  @Test(arguments: [false, true]) func `zero current is sent again when the VESC responds again`(_ holderGivesUp: Bool) throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: 2 * .second)
    let before = rig.vesc.motorCommands.count
    rig.deliversWrites = false
    if holderGivesUp {
      rig.give(.leaseEnded("the driver let go"))
      rig.run(for: 3 * .second)
    } else {
      Self.drive(&rig, for: 3 * .second, from: 500)
    }
    #expect(!rig.machine.router.motion.isLeaseHeld && rig.vesc.motorCommands.count == before, "the VESC has received nothing")
    rig.deliversWrites = true
    rig.run(for: .second)
    #expect(rig.vesc.motorCommands.suffix(3).map(\.command) == [.current(0), .current(0), .current(0)])
    let orders = rig.vesc.motorCommands.count
    #expect(orders == before + 3)
    // The VESC has confirmed it, so it is not sent after another silence.
    rig.deliversWrites = false
    rig.run(for: 3 * .second)
    rig.deliversWrites = true
    rig.run(for: 2 * .second)
    #expect(rig.vesc.motorCommands.count == orders)
  }

  @Test func `a stop is sent before everything that waits`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: .second)
    // One write is in flight; setpoints and commands wait.
    rig.acceptsWrites = false
    rig.run(until: { $0.machine.router.session.write != nil })
    let waiting = rig.machine.router.session.write?.id ?? 0
    for id in 1...3 { rig.set("target-current", .float(Double(id)), id: CommandID(id)) }
    rig.give(.perform(9, .run(action: 0, arguments: [:])))
    rig.give(.leaseEnded("the driver let go"))
    #expect((1...3).allSatisfy { rig.code($0) == "lease-lost" })
    let sends = rig.sends.count
    rig.acceptsWrites = true
    rig.surroundings.restoreWrites()
    rig.give(.sent(waiting, failure: nil))
    #expect(rig.sends[sends].bytes == VESCSetPoint.none.frame(canID: nil))
    Self.expectStopped(&rig)
  }

  @Test func `over a slow link only the latest setpoint is sent`() throws {
    var rig = try Self.driving()
    rig.run(for: 20 * .millisecond)
    rig.acceptsWrites = false
    rig.set("target-current", .float(1), id: 1)
    let waiting = rig.machine.router.session.write?.id ?? 0
    for id in 2...5 { rig.set("target-current", .float(Double(id)), id: CommandID(id)) }
    #expect(rig.results.isEmpty)
    rig.acceptsWrites = true
    rig.surroundings.restoreWrites()
    rig.give(.sent(waiting, failure: nil))
    rig.run(for: VESCMotion.minInterval)
    #expect(rig.vesc.motorCommands.map(\.command) == [.current(1), .current(5)])
    #expect((1...5).allSatisfy { rig.isDone($0) })
  }

  @Test func `the lease is refused while the daemon stops`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: .second)
    rig.give(.stopping)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the link is being closed")
    rig.set("target-current", .float(5), id: 1)
    rig.set("mode", .string("full"), id: 2)
    #expect(rig.error(1) == .notConnected("the link is being closed") && rig.error(2) == .notConnected("the link is being closed"))
    rig.run(for: 200 * .millisecond)
    #expect(rig.hasStopped)
    Self.expectStopped(&rig)
  }

  @Test func `many setpoints do not fill the line`() throws {
    var rig = try Self.driving()
    let polls = rig.machine.router.requests.polling.statistics.polls
    let sends = rig.sends.count
    for id in 0..<3000 {
      rig.set("target-current", .float(Double(id % 20)), id: CommandID(100 + id))
      rig.run(for: .millisecond)
    }
    #expect(rig.sends.count - sends <= 3 * (100 + 20) + 2 && rig.machine.router.requests.polling.statistics.polls - polls >= 59)
    rig.run(for: 20 * .millisecond)
    #expect((100..<3100).allSatisfy { rig.isDone(CommandID($0)) } && rig.lost.isEmpty)
    #expect(rig.vesc.motorCommands.last?.command == .current(19))
  }

  @Test func `a new driver starts after the zero current of the last lease`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: .second)
    rig.give(.leaseEnded("the driver let go"))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.set("target-current", .float(3), id: 1)
    rig.run(for: 250 * .millisecond)
    #expect(rig.isDone(1) && rig.vesc.motorCommands.last?.command == .current(3))
    #expect(rig.vesc.motorCommands.contains { $0.command == .current(0) })
  }

  @Test func `a VESC on the CAN bus is driven through the one on the link`() throws {
    var rig = try Self.driving(.v600, ["can-id": .int(2)])
    Self.drive(&rig, for: .second)
    rig.give(.leaseEnded("done"))
    rig.run(for: .second)
    #expect(rig.sends.allSatisfy { $0.bytes[2] == 34 && $0.bytes[3] == 2 })
    Self.expectStopped(&rig)
  }

  @Test func `without the daemon the motor stops within a second`() throws {
    var rig = try Self.driving()
    Self.drive(&rig, for: 2 * .second)
    var quiet = Effects()
    rig.vesc.handle(.wake, at: rig.now + 890 * .millisecond, &quiet)
    #expect(!rig.vesc.isTimedOut)
    rig.vesc.handle(.wake, at: rig.now + 1001 * .millisecond, &quiet)
    #expect(rig.vesc.isTimedOut && rig.vesc.motorCurrent == 0)
  }
}
