import Testing

@testable import Peers
@testable import Protocols

@Suite struct VESCPollingTests {
  static let off = "the VESC does not respond: check that its app is set to UART and that it is switched on"

  @Test(arguments: VESCModel.allCases)
  func `the supported requests of every firmware are detected, and its values published`(_ model: VESCModel) throws {
    let board: [String: Value] = [
      "pole-pairs": .int(7), "gear-ratio": .float(2.25), "wheel-diameter": .float(85), "cells": .int(10),
    ]
    var rig = try VESCRig(model, model.supportsSetupValues ? [:] : board)
    rig.start()
    rig.run(for: 10 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
    #expect(rig.text("firmware") == model.rawValue)
    #expect(rig.text("hardware") == (model == .v218 ? nil : "60"))
    let speed = rig.vesc.speed * 3.6
    #expect(speed > 10 && abs((rig.number("speed") ?? 0) - speed) < 1)
    #expect(abs((rig.number("erpm") ?? 0) - (rig.number("rpm") ?? 0) * 7) < 8 || !model.supportsLimits && model.supportsSetupValues)
    #expect((rig.number("battery") ?? 0) > 50 && (rig.number("battery-voltage") ?? 0) > 35)
    #expect((rig.number("motor-current") ?? 0) > 1 && (rig.number("battery-power") ?? 0) > 10)
    #expect(rig.text("fault-code") == "none" && rig.text("connected") == "on")
    #expect((rig.number("distance") ?? 0) >= 0.02 && (rig.number("mosfet-temperature") ?? 0) > 20)
    #expect((rig.number("total-distance") ?? 0) > (model.isAtLeast(.v502) ? 1204 : 0.004))
    #expect((rig.number("mosfet-temperature-1") != nil) == (model == .v218 || model.isAtLeast(.v348)))
    #expect((rig.number("uptime") != nil) == model.isAtLeast(.v600))
    #expect((rig.text("timed-out") == "off") == model.isAtLeast(.v600))
    #expect(rig.absence("uptime") == (model.isAtLeast(.v600) ? nil : "not reported by this firmware"))
    // Requests that the firmware does not support are not repeated.
    let lost = rig.number("timeouts") ?? 0
    rig.run(for: 30 * .second)
    #expect(rig.number("timeouts") == lost && lost <= 6 && rig.number("poll-rate") == 20)
    #expect(rig.machine.router.requests.polling.selectedSetupSupport == (model.supportsSelectiveValues ? .supported : .unsupported))
    #expect(rig.machine.router.requests.polling.setupSupport == (model.supportsSetupValues ? .supported : .unsupported))
  }

  @Test func `without a known drivetrain the missing keys are named`() throws {
    var rig = try VESCRig(.v333, ["pole-pairs": .int(7)])
    rig.start()
    rig.run(for: 5 * .second)
    #expect(rig.absence("speed") == "not reported by the VESC: set gear-ratio, wheel-diameter in the configuration")
    #expect(rig.absence("battery") == "not reported by the VESC: set cells in the configuration")
    #expect(rig.number("rpm") != nil && rig.number("erpm") != nil)
  }

  @Test func `the configured drivetrain overrides the VESC's own`() throws {
    var rig = try VESCRig(.v600, ["wheel-diameter": .float(170), "cells": .int(12)])
    rig.start()
    rig.run(for: 10 * .second)
    // Twice the wheel diameter is twice the speed; pole pairs and gear ratio are the VESC's.
    #expect(abs((rig.number("speed") ?? 0) - rig.vesc.speed * 3.6 * 2) < 1)
    #expect((rig.number("battery") ?? 100) < 30)
  }

  @Test(arguments: [20.0, 50, 1, 0.1, 7]) func `polls stay on the grid`(_ rate: Double) throws {
    var rig = try VESCRig(.v600, ["rate": .float(rate)], phase: 0.3, at: 123_456_789)
    rig.start()
    rig.run(for: 10 * .second)
    let before = rig.sends.count
    let missed = rig.machine.router.requests.polling.missed
    let wakes = rig.wakes
    let time: Nanoseconds = rate < 1 ? 1000 * .second : 100 * .second
    rig.run(for: time)
    let sends = rig.sends.dropFirst(before)
    #expect(abs(Double(sends.count) - rate * Double(time / .second)) <= 1)
    #expect(rig.machine.router.requests.polling.missed == missed)
    let period = Int64((1e9 / rate).rounded())
    let offset = Int64(Double(period) * 0.3)
    #expect(sends.allSatisfy { ($0.at - offset) % period == 0 })
    #expect(abs((rig.number("poll-rate") ?? 0) - rate) < 0.06)
    #expect(rig.number("lateness-p99") == 0 && rig.number("round-trip") == 2)
    // One wake per request.
    #expect(rig.wakes - wakes <= sends.count + 1)
    #expect(rig.fault == nil)
  }

  @Test func `slowly changing values are polled once per second`() throws {
    var rig = try VESCRig(.v600, ["rate": .float(50)])
    rig.start()
    rig.run(for: 5 * .second)
    let (fast, setup, values) = (rig.receivedCount(.selectedSetupValues), rig.receivedCount(.setupValues), rig.receivedCount(.values))
    rig.run(for: 100 * .second)
    #expect(rig.receivedCount(.setupValues) - setup <= 101 && rig.receivedCount(.setupValues) - setup >= 97)
    #expect(rig.receivedCount(.values) - values <= 101 && rig.receivedCount(.values) - values >= 97)
    #expect(rig.receivedCount(.selectedSetupValues) - fast >= 4798)
  }

  @Test func `a silent VESC is reported and polled twice per second`() throws {
    var rig = try VESCRig()
    rig.start()
    rig.run(for: 5 * .second)
    rig.deliversWrites = false
    rig.run(for: 2 * .second)
    #expect(rig.status == "silent" && rig.fault == Self.off && rig.absence("speed") == Self.off)
    #expect(rig.text("connected") == "off" && rig.absence("poll-rate") == Self.off && rig.number("total-distance") != nil)
    let before = rig.sends.count
    rig.run(for: 70 * .second)
    #expect(abs(rig.sends.count - before - 100) <= 1)
    rig.deliversWrites = true
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("speed") != nil && rig.text("connected") == "on")
    #expect(rig.resets.isEmpty)
  }

  @Test func `a wrong baud rate is reported`() throws {
    var rig = try VESCRig(.v600, faults: [Fault<VESCFaultKind>(.gibberish, .every(1))])
    rig.start()
    rig.run(for: 5 * .second)
    #expect(rig.status == "degraded" && rig.fault?.contains("115200") == true)
    #expect((rig.number("bad-frames") ?? 0) > 0 && rig.text("firmware") == nil)
    rig.vesc = VESC(.v600, origin: rig.now)
    rig.disconnect()
    rig.connect()
    rig.run(for: 3 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test(arguments: VESCFaultKind.allCases)
  func `occasional faults of the link do not cause a fault of the device`(_ kind: VESCFaultKind) throws {
    var rig = try VESCRig(.v600, faults: [Fault(kind, .every(20), duration: 300 * .millisecond)])
    rig.start()
    rig.run(for: 60 * .second)
    #expect(rig.faults.isEmpty && rig.number("speed") != nil && rig.resets.isEmpty)
    #expect((rig.number("polls") ?? 0) > 700)
    let polling = rig.machine.router.requests.polling
    #expect(polling.selectedSetupSupport == .supported && polling.setupSupport == .supported)
    // A run of noise is at most one wrong frame, and no value is read from it.
    #expect((rig.number("poll-rate") ?? 0) > 10)
  }

  @Test func `only a response to the request in flight counts`() throws {
    var rig = try VESCRig()
    rig.start()
    rig.run(for: 5 * .second)
    let erpm = rig.number("erpm")
    // Unsolicited, of another command, and a selection of other fields.
    for frame in [VESCVector.values600, VESCVector.selection, VESCVector.firmware402] { rig.give(.received(.main, frame)) }
    #expect(rig.number("erpm") == erpm && rig.text("firmware") == "6.00")
  }

  @Test func `a VESC on the CAN bus is polled through the one on the link`() throws {
    var rig = try VESCRig(.v600, ["can-id": .int(2)])
    rig.start()
    rig.run(for: 5 * .second)
    #expect(rig.status == "polling" && rig.number("controller-id") == 2)
    #expect(rig.sends.allSatisfy { $0.bytes[2] == 34 && $0.bytes[3] == 2 })
    var absent = try VESCRig(.v600, ["can-id": .int(9)])
    absent.start()
    absent.run(for: 5 * .second)
    #expect(absent.fault == "the VESC 9 on the CAN bus does not respond: check that its app is set to UART and that it is switched on")
  }

  @Test func `polling pauses during a scan of the CAN bus`() throws {
    var rig = try VESCRig()
    rig.start()
    rig.run(for: 5 * .second)
    rig.give(.perform(1, .run(action: 0, arguments: [:])))
    let before = rig.receivedCount(.selectedSetupValues)
    rig.run(for: 2400 * .millisecond)
    #expect(rig.progress[1]?.map(\.text) == ["scanning the CAN bus: 1 s", "scanning the CAN bus: 2 s"])
    #expect(rig.progress[1]?.map(\.progress) == [0.2, 0.4])
    #expect(rig.receivedCount(.selectedSetupValues) - before <= 1)
    rig.run(for: .second)
    guard case .success(let report)? = rig.results[1]?.first else { throw RigError() }
    #expect(report.columns == ["can-id"] && report.rows == [["2"]])
    #expect(rig.receivedCount(.selectedSetupValues) - before > 10 && rig.fault == nil)
    // A scan without a response ends, and a caller that disconnects gets no reply.
    rig.deliversWrites = false
    rig.give(.perform(2, .run(action: 0, arguments: [:])))
    rig.run(for: 4 * .second)
    rig.deliversWrites = true
    rig.run(for: 3 * .second)
    #expect(rig.error(2) == .timeout(milliseconds: 5000) || rig.error(2) != nil)
    rig.give(.perform(3, .run(action: 0, arguments: [:])))
    rig.give(.cancelled(3))
    rig.run(for: 6 * .second)
    #expect(rig.results[3] == nil && rig.status == "polling")
  }

  struct RigError: Error {}

  @Test func `without a link a command is rejected at once`() throws {
    var rig = try VESCRig()
    rig.give(.perform(1, .run(action: 0, arguments: [:])))
    #expect(rig.error(1) == .notConnected("the link is not up yet"))
    #expect(rig.machine.nextWake == nil)
  }

  @Test func `the distance is accumulated across restarts if the VESC has no odometer`() throws {
    var rig = try VESCRig(.v340)
    rig.start()
    rig.run(for: 60 * .second)
    let first = rig.number("total-distance") ?? 0
    #expect(first > 0.15 && abs(first - rig.vesc.ride.travelled / 1000) < 0.06)
    rig.give(.stopping)
    #expect(rig.hasStopped && rig.machine.nextWake == nil)
    rig.vesc = VESC(.v340, origin: rig.now)
    try rig.restartDaemon()
    let restored = rig.number("total-distance") ?? 0
    #expect(restored >= first)
    rig.run(for: 30 * .second)
    #expect((rig.number("total-distance") ?? 0) > restored + 0.05)
    #expect((rig.number("total-distance") ?? 0) <= restored + rig.vesc.ride.travelled / 1000 + 0.001)
  }

  @Test func `faults of the VESC are reported by name`() throws {
    var rig = try VESCRig()
    rig.start()
    rig.run(for: 5 * .second)
    rig.deliversWrites = false
    rig.run(until: {
      $0.machine.router.requests.telemetry.values[.fault] != nil && $0.sends.last?.bytes[2] == 51 && $0.sends.last?.at == $0.now
    })
    rig.give(.received(.main, VESCFrame.enclosing([0x33] + VESCCommand.bytes(1 << 5 | 1 << 16 as UInt32) + [0, 0, 0, 0, 5])))
    #expect(rig.text("fault-code") == "over-temp-fet" && rig.fault == "the VESC reports over-temp-fet")
    rig.deliversWrites = true
    rig.run(for: 2 * .second)
    #expect(rig.text("fault-code") == "none" && rig.fault == nil)
  }

  @Test func `invalid options are rejected`() {
    #expect(throws: OptionError.self) { try VESCMachine(VESCRig.setup([:], modes: [Setup.Subsection("full", [:])])) }
    #expect(throws: Never.self) {
      try VESCMachine(VESCRig.setup(["max-motor-current": .float(5), "allow-motion": .bool(true)], modes: VESCRig.modes))
    }
  }
}
