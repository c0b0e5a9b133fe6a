import Testing

@testable import Peers
@testable import Protocols

/// Hostile input: the machine does not trap, its memory is bounded, and nothing moves without a lease.
@Suite struct VESCRobustnessTests {
  static let responses: [[UInt8]] = {
    var vesc = VESC(.v600)
    let setup = vesc.reply(to: [47], as: 1, at: 0) ?? []
    let fast = vesc.reply(to: [51] + VESCCommand.bytes(VESCValues.fastMask), as: 1, at: 0) ?? []
    let limits = vesc.reply(to: [91], as: 1, at: 0) ?? []
    return VESCVector.replies + [setup, fast, limits, [48], [62, 2, 3]].map(VESCFrame.enclosing)
  }()

  @Test func `the reader survives mutated frames and reads the next one`() {
    var dice = OBDRobustnessTests.Dice(state: 0x9E37_79B9_7F4A_7C15)
    var reader = VESCReader()
    var values = VESCValues()
    for _ in 0..<6_000 {
      let bytes = OBDRobustnessTests.mutate(Self.responses[dice.below(Self.responses.count)], &dice)
      let cut = dice.below(bytes.count + 1)
      for payload in VESCFrameTests.payloads([Array(bytes[..<cut]), Array(bytes[cut...])], &reader) {
        for command in [VESCCommand.values, .setupValues, .selectedSetupValues, .selectedValues] {
          _ = values.read(command, payload.dropFirst())
        }
        _ = VESCBoard(payload.dropFirst())
        _ = VESCFirmware(payload.dropFirst())
      }
      #expect(reader.bufferedCount <= 2 * VESCFrame.maxLength)
      if dice.below(4) == 0 {
        while reader.nextAfterSilence() != nil {}
        #expect(VESCFrameTests.payloads([VESCVector.selection], &reader).count == 1)
      }
    }
  }

  @Test func `the machine survives any input in any order, and completes every command once`() throws {
    for seed in 1...12 {
      var dice = OBDRobustnessTests.Dice(state: UInt64(seed) &* 0x2545_F491_4F6C_DD1D)
      var machine = try VESCMachine(
        VESCRig.setup(
          ["allow-motion": .bool(seed % 3 != 0), "rate": .float([20, 50, 0.1][seed % 3])], modes: VESCRig.modes, phase: 0.5))
      var effects = Effects()
      var now: Instant = Int64(dice.below(1 << 40))
      var lastCommand: CommandID = 0
      var cancelled: Set<CommandID> = []
      var completions: [CommandID: Int] = [:]
      var isUp = false
      var isLeaseHeld = false
      var outstanding: SendID?
      for _ in 0..<3_000 {
        now &+= [0, .millisecond, 49 * .millisecond, 201 * .millisecond, 6 * .second][dice.below(5)]
        let input = Self.input(&dice, &lastCommand, &cancelled, machine, isUp: isUp, isLeaseHeld: isLeaseHeld, outstanding)
        switch input {
        case .linkChanged(.main, .up): (isUp, outstanding) = (true, nil)
        case .linkChanged(.main, .down): (isUp, outstanding) = (false, nil)
        case .sent(outstanding, _): outstanding = nil
        case .leaseBegan: isLeaseHeld = true
        case .leaseEnded: isLeaseHeld = false
        default: break
        }
        effects.removeAll()
        machine.handle(input, at: now, &effects)
        for effect in effects.list {
          switch effect {
          case .complete(let id, _): completions[id, default: 0] += 1
          case .send(_, let bytes, let id, _):
            #expect(isUp && outstanding == nil, "a write over a link that is down or busy")
            outstanding = id
            // Nothing but zero current moves without a lease.
            let moves = [5, 6, 7, 10].contains(bytes[2]) && bytes != VESCSetPoint.none.frame(canID: nil)
            #expect(!moves || isLeaseHeld)
          case .leaseLost: isLeaseHeld = false
          case .resetLink: isUp = false
          default: break
          }
        }
        for reading in effects.readings { Self.check(reading, machine) }
        let (reader, queue) = (machine.router.session.reader, machine.router.requests.queue)
        #expect(queue.count <= VESCCommandQueue.limit + 1 && reader.bufferedCount <= 2 * VESCFrame.maxLength)
      }
      effects.removeAll()
      machine.handle(.stopping, at: now, &effects)
      if let outstanding { machine.handle(.sent(outstanding, failure: nil), at: now, &effects) }
      machine.handle(.linkChanged(.main, .down("closed")), at: now, &effects)
      for effect in effects.list { if case .complete(let id, _) = effect { completions[id, default: 0] += 1 } }
      for id in 1..<max(lastCommand + 1, 2) where lastCommand > 0 {
        #expect(completions[id] == 1 || (cancelled.contains(id) && completions[id] == nil), "command \(id) of seed \(seed)")
      }
      #expect(machine.nextWake == nil)
    }
  }

  static func check(_ reading: Reading, _ machine: VESCMachine) {
    guard machine.schema.properties.indices.contains(reading.property) else {
      Issue.record("a reading of an unknown property")
      return
    }
    guard case .value(let value) = reading.content else { return }
    let property = machine.schema.properties[reading.property]
    #expect(value.type == property.type && (try? property.rule.accept(value)) == value, "\(property.name) cannot be \(value.text)")
  }

  private static func input(
    _ dice: inout OBDRobustnessTests.Dice, _ lastCommand: inout CommandID, _ cancelled: inout Set<CommandID>, _ machine: VESCMachine,
    isUp: Bool,
    isLeaseHeld: Bool, _ outstanding: SendID?
  ) -> Input {
    switch dice.below(48) {
    case 0: return .linkChanged(.main, .down("gone"))
    case 1, 2: return .linkChanged(.main, .up(maximumSend: dice.below(2) == 0 ? nil : 20))
    case 3..<14: return .sent(outstanding ?? SendID(dice.below(100)), failure: dice.below(20) == 0 ? "refused" : nil)
    case 14: return .stored(key: ["mode", "limits", "odometer", "x"][dice.below(4)], failure: dice.below(3) == 0 ? "no space" : nil)
    case 15, 16:
      lastCommand += 1
      return .perform(lastCommand, .run(action: dice.below(2), arguments: [:]))
    case 17, 18:
      lastCommand += 1
      return .perform(lastCommand, .set(property: VESCProperty.mode.rawValue, .string(["eco", "sport", "full", "?"][dice.below(4)])))
    case 19..<24:
      lastCommand += 1
      let property = VESCProperty.targetCurrent.rawValue + dice.below(4)
      return .perform(lastCommand, .set(property: property, dice.below(9) == 0 ? .string("x") : .float(Double(dice.below(10)))))
    case 24:
      let id = CommandID(dice.below(Int(lastCommand) + 1))
      cancelled.insert(id)
      return .cancelled(id)
    case 25, 26: return isLeaseHeld ? .leaseEnded("done") : .leaseBegan(deadline: 300 * .millisecond)
    case 27: return .received(.main, (0..<dice.below(600)).map { _ in dice.byte() })
    case 28: return .received("other", [1, 2, 3])
    case 29..<40:
      if let request = machine.router.session.request, let response = responses.first(where: { $0[2] == request.command.rawValue }) {
        return .received(.main, dice.below(4) == 0 ? OBDRobustnessTests.mutate(response, &dice) : response)
      }
      return .received(.main, OBDRobustnessTests.mutate(responses[dice.below(responses.count)], &dice))
    default: return .wake
    }
  }

  @Test func `a flood of frames does not fill memory or change values`() throws {
    var rig = try VESCRig()
    rig.start()
    rig.run(for: 3 * .second)
    let polls = rig.sends.count
    let erpm = rig.number("erpm")
    rig.deliversWrites = false
    rig.run(for: 60 * .millisecond)
    for _ in 0..<200 { rig.give(.received(.main, VESCVector.values600 + VESCVector.selection + VESCVector.firmware600)) }
    #expect(rig.sends.count - polls <= 8 && rig.machine.router.session.reader.bufferedCount == 0)
    _ = erpm
    rig.deliversWrites = true
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `an endless incomplete frame is reported as invalid data`() throws {
    var rig = try VESCRig()
    rig.start()
    rig.run(for: 3 * .second)
    rig.deliversWrites = false
    for _ in 0..<100 {
      rig.give(.received(.main, Array(VESCVector.values600.prefix(40))))
      rig.run(for: 100 * .millisecond)
      #expect(rig.machine.router.session.reader.bufferedCount <= 2 * VESCFrame.maxLength)
    }
    #expect(rig.status == "degraded" && rig.fault?.contains("115200") == true && rig.number("speed") == nil)
    rig.deliversWrites = true
    rig.run(for: 3 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("speed") != nil && rig.resets.isEmpty)
  }

  @Test func `implausible values are absent`() throws {
    var rig = try VESCRig(.v600, ["wheel-diameter": .float(85)])
    rig.start()
    rig.run(for: 3 * .second)
    rig.run(until: { if case .ready = $0.machine.router.session.state { true } else { false } })
    rig.deliversWrites = false
    rig.run(until: { $0.machine.router.session.request?.command == .selectedSetupValues })
    let payload =
      [51] + VESCCommand.bytes(VESCValues.fastMask) + hex("7F FF FF FF 80 00 00 00 7F FF 80 00 00 00 80 00 00 00 80 00 80 00 FF")
    rig.give(.received(.main, VESCFrame.enclosing(payload)))
    #expect(rig.number("erpm") == -2_147_483_648 && rig.text("fault-code") == "255" && rig.number("battery") == 0)
    for name in ["speed", "battery-voltage", "duty", "motor-current", "battery-current"] {
      #expect(rig.absence(name) == "implausible value from the VESC", "\(name)")
    }
  }

  @Test func `rolling back decreases the distance, but not the total`() throws {
    var rig = try VESCRig(.v340)
    rig.start()
    rig.run(for: 12 * .second)
    let total = rig.machine.router.requests.telemetry.odometer.total
    rig.deliversWrites = false
    rig.run(until: { $0.machine.router.session.request?.command == .setupValues })
    var response = rig.vesc.reply(to: [47], as: 1, at: rig.now) ?? []
    response.replaceSubrange(43..<51, with: VESCCommand.bytes(-5000 as Int32) + VESCCommand.bytes(-7000 as Int32))
    rig.give(.received(.main, VESCFrame.enclosing(response)))
    #expect(rig.number("distance") == -0.005 && rig.machine.router.requests.telemetry.odometer.total == total)
  }

  @Test func `a link that accepts no write is reset`() throws {
    var rig = try VESCRig(.v600, VESCMotionTests.options)
    rig.start()
    rig.run(for: 3 * .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.acceptsWrites = false
    rig.run(for: 10 * .second)
    #expect(rig.resets == ["write timeout"] && rig.lost == ["no setpoint for 300 ms"])
    rig.acceptsWrites = true
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `times at the limits of the clock are survived`() throws {
    for start in [Instant.max - 3 * .second, Instant.min / 2, 0, -1] as [Instant] {
      var machine = try VESCMachine(VESCRig.setup(["allow-motion": .bool(true)], modes: VESCRig.modes, phase: 0.999))
      var effects = Effects()
      machine.handle(.linkChanged(.main, .up(maximumSend: nil)), at: start, &effects)
      for step in 0..<40 {
        machine.handle(.sent(SendID(step), failure: nil), at: start, &effects)
        machine.handle(.received(.main, VESCVector.firmware600), at: start, &effects)
        machine.handle(.wake, at: start &+ Int64(step) * 10 * .millisecond, &effects)
      }
      machine.handle(.linkChanged(.main, .down("gone")), at: .max, &effects)
      #expect(machine.nextWake == nil)
    }
  }
}
