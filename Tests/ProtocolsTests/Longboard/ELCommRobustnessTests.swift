import Peers
import Testing

@testable import Protocols

/// Hostile boards: the machine does not trap, its memory is bounded, it reports the fault, and it recovers.
@Suite struct ELCommRobustnessTests {
  typealias Dice = OBDRobustnessTests.Dice

  static let healthy = "12$88$1$0.35"

  /// A board of this dialect, which was detected.
  static func connected(_ dialect: ArduinoBoard.Dialect) throws -> ELCommRig {
    var rig = try ELCommRig(dialect: dialect)
    rig.start(for: 3 * .second)
    return rig
  }

  @Test(arguments: ArduinoBoard.Dialect.allCases) func `a wrong baud rate is reported`(_ dialect: ArduinoBoard.Dialect) throws {
    var rig = try ELCommRig(dialect: dialect, faults: "wrong-baud")
    rig.start(for: 6 * .second)
    #expect(rig.status == "degraded" && rig.fault?.contains("baud rate (9600") == true, "\(rig.fault ?? "")")
    #expect(rig.number("bad-messages").map { $0 > 1 } == true && rig.number("speed") == nil)
    rig.board = ArduinoBoard(dialect)
    rig.disconnect()
    rig.connect()
    rig.run(for: 4 * .second)
    #expect(rig.status == "live" && rig.fault == nil && rig.resets.isEmpty)
  }

  @Test(arguments: ArduinoBoard.Dialect.allCases)
  func `an endless incomplete message is reported, and recovery follows`(_ dialect: ArduinoBoard.Dialect)
    throws
  {
    var rig = try Self.connected(dialect)
    rig.isBoardMute = true
    for _ in 0..<60 {
      rig.receive("12$88")
      rig.run(for: 100 * .millisecond)
      #expect(rig.machine.dialogue.receiver.decoder.buffer.count <= ELCommDecoder.limit)
    }
    #expect(rig.fault?.hasPrefix("invalid data from the board") == true && rig.number("speed") == nil)
    rig.run(for: 10 * .second)
    #expect(rig.fault == "the board does not respond: check its power")
    rig.isBoardMute = false
    rig.run(for: 4 * .second)
    #expect(rig.status == "live" && rig.fault == nil)
  }

  @Test(arguments: ArduinoBoard.Dialect.allCases)
  func `a flood of messages is reported, and the number of writes is bounded`(_ dialect: ArduinoBoard.Dialect)
    throws
  {
    var rig = try Self.connected(dialect)
    let before = rig.sends.count
    let flood = String(repeating: Self.healthy, count: 500)
    for _ in 0..<300 {
      rig.receive(flood)
      rig.run(for: 10 * .millisecond)
    }
    #expect(rig.status == "degraded" && rig.fault?.contains("messages per second") == true)
    #expect(rig.sends.count - before < 200)
    rig.run(for: 5 * .second)
    #expect(rig.status == "live" && rig.fault == nil)
  }

  @Test(arguments: ArduinoBoard.Dialect.allCases) func `a board that responds immediately does not increase the rate without limit`(
    _ dialect: ArduinoBoard.Dialect
  )
    throws
  {
    var rig = try ELCommRig(dialect: dialect, isInstant: true)
    rig.start(for: 10 * .second)
    #expect(rig.status == "live" && rig.sends.count < 520)
  }

  @Test(
    arguments: ["split", "cut:3", "coalesce:3", "noise:2", "silence:7:900", "reset:9", "disconnect:20", "flood:9"],
    ArduinoBoard.Dialect.allCases)
  func `every fault of a board is survived`(_ fault: String, _ dialect: ArduinoBoard.Dialect) throws {
    var rig = try ELCommRig(dialect: dialect, faults: fault)
    rig.start()
    for second in 0..<60 {
      rig.run(for: .second)
      if !rig.isUp { rig.connect() }
      if second == 30 { rig.set("buzzer", .bool(true)) }
    }
    #expect(rig.number("messages").map { $0 > 40 } == true, "\(rig.number("messages") ?? -1)")
    #expect(rig.results[1]?.count == 1 && rig.resets.isEmpty && !rig.board.isSounding)
    #expect(rig.number("total-distance").map { $0 < 0.6 } == true)
  }

  @Test func `mutated messages are survived, and yield only valid values`() {
    var dice = Dice(state: 0x1234_5678_9ABC_DEF1)
    let seeds = ELCommDecoderTests.vectors.map { Array($0.0.utf8) } + [Array("12$88$1$0.35$7$ok".utf8), Array("OK+CONN7".utf8)]
    var decoder = ELCommDecoder()
    for _ in 0..<30_000 {
      for byte in OBDRobustnessTests.mutate(seeds[dice.below(seeds.count)], &dice) {
        guard let message = decoder.decode(byte) else { continue }
        #expect(ELCommDecoder.speeds.contains(message.speed) && ELCommDecoder.charges.contains(message.battery))
        #expect(abs(message.distance) <= 99_999_999)
      }
      #expect(decoder.buffer.count <= ELCommDecoder.limit && decoder.lastBad.count <= ELCommDecoder.limit)
      if dice.below(3) == 0 { decoder.flush() }
    }
  }

  @Test func `any input in any order is survived, and every command completes once`() throws {
    for seed in 1...12 {
      var dice = Dice(state: UInt64(seed) &* 0x2545_F491_4F6C_DD1D)
      let dialect: [String: Value] = [[:], ["dialect": .string("as-built")], ["dialect": .string("documented")]][seed % 3]
      var machine = try ELCommMachine(Setup(options: dialect))
      var effects = Effects()
      var now: Instant = Int64(dice.below(1 << 40))
      var lastCommand: CommandID = 0
      var cancelled: Set<CommandID> = []
      var completions: [CommandID: Int] = [:]
      var outstanding: Set<SendID> = []
      var isUp = false
      for _ in 0..<3_000 {
        now &+= [0, .millisecond, 49 * .millisecond, 450 * .millisecond, 6 * .second, 3600 * .second][dice.below(6)]
        effects.removeAll()
        let input = Self.input(&dice, &lastCommand, &cancelled, &outstanding)
        switch input {
        case .linkChanged(.main, .up): (isUp, outstanding) = (true, [])
        case .linkChanged(.main, .down): (isUp, outstanding) = (false, [])
        default: break
        }
        machine.handle(input, at: now, &effects)
        for effect in effects.list {
          switch effect {
          case .complete(let id, _): completions[id, default: 0] += 1
          case .send(_, _, let id?, _):
            #expect(isUp && outstanding.isEmpty, "seed \(seed)")
            outstanding.insert(id)
          case .resetLink: (isUp, outstanding) = (false, [])
          default: break
          }
        }
        for reading in effects.readings {
          guard case .value(let value) = reading.content else { continue }
          let property = machine.schema.properties[reading.property]
          #expect((try? property.rule.accept(value)) == value, "\(property.name): \(value)")
        }
      }
      effects.removeAll()
      machine.handle(.stopping, at: now, &effects)
      machine.handle(.linkChanged(.main, .down("end")), at: now, &effects)
      for effect in effects.list { if case .complete(let id, _) = effect { completions[id, default: 0] += 1 } }
      for id in 1..<max(lastCommand + 1, 2) where lastCommand > 0 {
        #expect(completions[id] == 1 || (cancelled.contains(id) && completions[id] == nil), "command \(id) of seed \(seed)")
      }
      #expect(machine.nextWake == nil)
    }
  }

  private static func input(
    _ dice: inout Dice, _ lastCommand: inout CommandID, _ cancelled: inout Set<CommandID>, _ outstanding: inout Set<SendID>
  )
    -> Input
  {
    switch dice.below(30) {
    case 0: return .linkChanged(.main, .down("gone"))
    case 1: return .linkChanged(.main, .up(maximumSend: 20))
    case 2: return .started(restored: ["distance": [UInt8(dice.below(256))]], wall: WallTime(microseconds: .max))
    case 3: return .stored(key: "distance", failure: dice.below(2) == 0 ? "no space" : nil)
    case 4, 5:
      lastCommand += 1
      return .perform(lastCommand, .set(property: ELCommProperty.buzzer.rawValue, .bool(dice.below(2) == 0)))
    case 6:
      lastCommand += 1
      let times = ["2s", "9", "x", "500ms"]
      return .perform(lastCommand, .run(action: 0, arguments: ["duration": .string(times[dice.below(4)])]))
    case 7:
      lastCommand += 1
      return .perform(lastCommand, .run(action: dice.below(2), arguments: ["hold": .bool(true)]))
    case 8:
      let id = CommandID(dice.below(Int(lastCommand) + 1))
      cancelled.insert(id)
      return .cancelled(id)
    case 9: return .received("other", [1, 2, 3])
    case 10: return .received(.main, (0..<dice.below(600)).map { _ in dice.byte() })
    case 11..<18:
      guard let id = outstanding.popFirst() else { return .wake }
      return .sent(id, failure: dice.below(10) == 0 ? "refused" : nil)
    case 18..<24: return .received(.main, OBDRobustnessTests.mutate(Array(healthy.utf8), &dice))
    case 24..<27: return .received(.main, Array(healthy.utf8))
    default: return .wake
    }
  }
}
