import Testing

@testable import Peers
@testable import Protocols

@Suite struct VESCModeTests {
  static func connected(_ model: VESCModel = .v600, _ options: [String: Value] = [:]) throws -> VESCRig {
    var rig = try VESCRig(model, options, modes: VESCRig.modes)
    rig.start()
    rig.run(for: 3 * .second)
    return rig
  }

  /// ERPM at 15 km/h on the simulated board.
  static let eco: Float = {
    let turns: Double = 15 / 3.6 / (Double.pi * 0.085)
    return Float(turns * 60 * 15.75)
  }()

  static func isEco(_ vesc: VESC) -> Bool { vesc.limitsInEffect.current == 0.5 && abs(vesc.limitsInEffect.erpm - eco) < 10 }
  static func isFull(_ vesc: VESC) -> Bool { vesc.limitsInEffect.current == 1 && vesc.limitsInEffect.erpm == 100_000 }

  @Test func `no mode is reported until one is selected`() throws {
    let rig = try Self.connected()
    #expect(rig.absence("mode") == "not set" && rig.receivedCount(.setLimits) == 0)
    let mode = rig.machine.schema.properties[VESCProperty.mode.rawValue]
    #expect(mode.choices == ["eco", "sport", "full"] && mode.access == .write && mode.persisted)
  }

  @Test func `a mode is written, verified, stored and published`() throws {
    var rig = try Self.connected()
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: .second)
    #expect(rig.isDone(1) && rig.text("mode") == "eco" && Self.isEco(rig.vesc))
    #expect(rig.disk["mode"] == Array("eco".utf8) && rig.disk["limits"]?.count == 82)
    // The limits of braking and battery are unchanged.
    #expect(rig.vesc.limits.values[0] == 1 && Array(rig.vesc.limits.values[4...]) == [0.005, 0.95, -1500, 1500, -20, 40])
    rig.set("mode", .string("sport"), id: 2)
    rig.run(for: .second)
    #expect(rig.isDone(2) && abs(rig.vesc.limitsInEffect.current - 0.9) < 0.001 && rig.vesc.limitsInEffect.erpm == 100_000)
    rig.set("mode", .string("full"), id: 3)
    rig.run(for: .second)
    #expect(rig.isDone(3) && Self.isFull(rig.vesc) && rig.text("mode") == "full" && rig.disk["limits"] == nil)
    // The mode is active already: nothing is written.
    let writes = rig.receivedCount(.setLimits)
    rig.set("mode", .string("full"), id: 4)
    rig.run(for: .second)
    #expect(rig.isDone(4) && rig.receivedCount(.setLimits) == writes && writes == 3)
    rig.run(for: 10 * .second)
    #expect(rig.text("mode") == "full" && rig.status == "polling")
  }

  @Test func `limits are forwarded to all VESCs, except if one is configured by its CAN ID`() throws {
    var rig = try Self.connected()
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: .second)
    #expect(rig.vesc.forwardedLimits?.current == 0.5 && rig.vesc.forwardedLimits?.erpm == rig.vesc.limitsInEffect.erpm)
    // The number of VESCs is also known in time if the mode is selected before the connection.
    rig.disconnect()
    rig.vesc = VESC(.v600, origin: rig.now)
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(Self.isEco(rig.vesc) && rig.vesc.forwardedLimits?.current == 0.5)
    rig.set("mode", .string("full"), id: 2)
    rig.run(for: .second)
    #expect(rig.vesc.forwardedLimits?.current == 1)
    var behind = try Self.connected(.v600, ["can-id": .int(2)])
    behind.set("mode", .string("eco"), id: 1)
    behind.run(for: .second)
    #expect(behind.isDone(1) && behind.vesc.forwardedLimits == nil)
  }

  @Test func `the board does not exceed the speed of its mode`() throws {
    var rig = try Self.connected(.v600, ["allow-motion": .bool(true), "max-motor-current": .float(60)])
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    VESCMotionTests.drive(&rig, "target-current", 60, for: 15 * .second)
    #expect((rig.number("speed") ?? 99) < 15.5 && (rig.number("speed") ?? 0) > 13)
    #expect((rig.number("motor-current") ?? 99) <= 30)
  }

  @Test func `mode and own limits survive a restart of the daemon`() throws {
    var rig = try Self.connected()
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: .second)
    rig.disconnect()
    try rig.restartDaemon(modes: VESCRig.modes)
    let writes = rig.receivedCount(.setLimits)
    rig.run(for: 2 * .second)
    #expect(rig.text("mode") == "eco" && Self.isEco(rig.vesc) && rig.receivedCount(.setLimits) == writes)
    rig.set("mode", .string("full"), id: 2)
    rig.run(for: .second)
    #expect(rig.isDone(2) && Self.isFull(rig.vesc))
  }

  @Test func `a mode is activated again after the VESC was switched off`() throws {
    var rig = try Self.connected()
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: .second)
    // Between two polls, so that only its counters show it.
    rig.vesc.restart(at: rig.now)
    #expect(Self.isFull(rig.vesc))
    rig.run(for: 3 * .second)
    #expect(rig.eventNames == ["vesc-restarted"] && Self.isEco(rig.vesc) && rig.text("mode") == "eco")
    // For so long that it counts as silent.
    rig.deliversWrites = false
    rig.run(for: 3 * .second)
    #expect(rig.absence("mode") == "eco is pending: set when the VESC responds")
    rig.vesc.restart(at: rig.now)
    rig.deliversWrites = true
    rig.run(for: 3 * .second)
    #expect(Self.isEco(rig.vesc) && rig.text("mode") == "eco")
  }

  @Test func `limits that were changed meanwhile are the VESC's own ones`() throws {
    var rig = try Self.connected()
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: .second)
    rig.disconnect()
    rig.vesc.restart(at: rig.now)
    rig.vesc.limits.values[1] = 0.8
    rig.vesc.limits.values[3] = 20_000
    rig.run(for: .second)
    rig.connect()
    rig.run(for: 2 * .second)
    // The limits are reduced from those that the owner set, and never increased.
    #expect(
      abs(rig.vesc.limitsInEffect.current - 0.4) < 0.001 && rig.vesc.limitsInEffect.erpm == 20_000
        || abs(rig.vesc.limitsInEffect.erpm - Self.eco) < 10)
    rig.set("mode", .string("full"), id: 2)
    rig.run(for: .second)
    #expect(rig.vesc.limitsInEffect.current == 0.8 && rig.vesc.limitsInEffect.erpm == 20_000)
  }

  @Test func `a mode selected without a VESC is activated when it responds`() throws {
    var rig = try VESCRig(.v600, modes: VESCRig.modes)
    rig.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    rig.set("mode", .string("eco"), id: 1)
    #expect(rig.isDone(1) && rig.disk["mode"] == Array("eco".utf8))
    #expect(rig.absence("mode") == "eco is pending: set when the VESC responds")
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.text("mode") == "eco" && Self.isEco(rig.vesc))
  }

  @Test func `firmware without limits is reported as too old`() throws {
    var rig = try Self.connected(.v360)
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: 2 * .second)
    #expect(rig.code(1) == "not-supported" && rig.fault == nil && rig.status == "polling")
    #expect(rig.disk["mode"] == nil && rig.absence("mode") == "not set")
    // If the mode was selected before, the fault is kept.
    var other = try VESCRig(.v360, modes: VESCRig.modes)
    other.start(restored: ["mode": Array("eco".utf8)])
    other.run(for: 5 * .second)
    #expect(other.fault?.hasPrefix("the mode eco is not active") == true && other.status == "degraded")
    #expect(other.number("speed") != nil)
  }

  @Test func `a speed limit requires a known drivetrain`() throws {
    var rig = try VESCRig(.v600, modes: VESCRig.modes)
    rig.start()
    rig.run(for: 3 * .second)
    let payload = (rig.vesc.reply(to: [91], as: 1, at: rig.now) ?? []).dropLast(4) + [0, 0, 0, 0]
    rig.run(until: { if case .ready = $0.machine.router.session.state { true } else { false } })
    rig.deliversWrites = false
    rig.set("mode", .string("eco"), id: 1)
    rig.give(.received(.main, VESCFrame.enclosing(Array(payload))))
    #expect(rig.code(1) == "not-configured")
  }

  @Test func `a mode change fails if the link is lost, and the old mode is activated again`() throws {
    var rig = try Self.connected()
    rig.set("mode", .string("eco"), id: 1)
    rig.disconnect()
    #expect(rig.error(1) == .notConnected("gone"))
    rig.connect()
    rig.run(for: 3 * .second)
    #expect(rig.absence("mode") == "not set")
    rig.set("mode", .string("sport"), id: 2)
    rig.run(for: .second)
    #expect(rig.isDone(2))
  }

  @Test func `a mode that was removed from the configuration restores the VESC's own limits`() throws {
    var rig = try Self.connected()
    rig.set("mode", .string("eco"), id: 1)
    rig.run(for: .second)
    rig.disconnect()
    try rig.restartDaemon()
    rig.run(for: 2 * .second)
    #expect(rig.text("mode") == "full" && Self.isFull(rig.vesc))
  }

  @Test func `damaged stored limits are ignored`() throws {
    for stored in [[], [1, 2, 3], [UInt8](repeating: 0xFF, count: 80), [UInt8](repeating: 0, count: 81)] as [[UInt8]] {
      #expect(VESCStoredLimits(stored: stored) == nil)
      var rig = try VESCRig(.v600, modes: VESCRig.modes)
      rig.start(restored: ["limits": stored, "mode": stored, "odometer": stored])
      rig.run(for: 2 * .second)
      #expect(rig.number("speed") != nil)
      #expect(rig.events.count { $0 == "stored settings are corrupt and were discarded: mode; set them again" } == 1, "\(rig.events)")
    }
  }

  @Test func `a stored mode that was removed from the configuration is not damaged`() throws {
    var rig = try VESCRig(.v600, modes: VESCRig.modes)
    rig.start(restored: ["mode": Array("old-mode".utf8)])
    rig.run(for: 2 * .second)
    #expect(rig.events.isEmpty && rig.text("mode") == "full", "\(rig.events)")
  }

  @Test func `a mode is activated despite lost frames`() throws {
    for kind in [VESCFaultKind.cut, .wrongCRC, .noise, .prints] {
      var rig = try VESCRig(.v600, modes: VESCRig.modes, faults: [Fault(kind, .every(3))])
      rig.start()
      rig.run(for: 3 * .second)
      rig.set("mode", .string("eco"), id: 1)
      rig.run(for: 3 * .second)
      #expect(rig.isDone(1) && Self.isEco(rig.vesc), "\(kind)")
    }
  }
}
