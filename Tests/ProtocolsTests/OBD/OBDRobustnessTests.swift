import Testing

@testable import Protocols

/// Hostile input: the machine survives with bounded memory, and no wrong value is published.
@Suite struct OBDRobustnessTests {
  /// A deterministic generator, so that failures can be reproduced.
  struct Dice {
    var state: UInt64
    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
    mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(max(limit, 1))) }
    mutating func byte() -> UInt8 { UInt8(truncatingIfNeeded: next() >> 32) }
  }

  static let seeds: [[UInt8]] = [
    Vector.ev6, Vector.kona, Vector.soul, Vector.interleaved, Vector.glued, Vector.multi, Vector.long, Vector.kLine, Vector.noisyBanner,
    Vector.vehicleNumber, Vector.wallboxRecord05, Array("SEARCHING...\rBUS INIT: ...OK\rLV RESET\r\r>".utf8),
  ]

  static func mutate(_ seed: [UInt8], _ dice: inout Dice) -> [UInt8] {
    var bytes = seed
    for _ in 0...dice.below(4) where !bytes.isEmpty {
      let at = dice.below(bytes.count)
      switch dice.below(7) {
      case 0: bytes[at] ^= 1 << UInt8(dice.below(8))
      case 1: bytes[at] = dice.byte()
      case 2: bytes.remove(at: at)
      case 3: bytes.insert(dice.byte(), at: at)
      case 4: bytes.removeSubrange(at..<min(at + dice.below(30), bytes.count))
      case 5: bytes.insert(contentsOf: bytes[at..<min(at + dice.below(40), bytes.count)], at: dice.below(bytes.count))
      default: bytes[at] = Array("0123456789ABCDEF: >\r\n".utf8)[dice.below(21)]
      }
    }
    return bytes
  }

  @Test func theReaderSurvivesMutatedReplies() {
    var dice = Dice(state: 0x9E37_79B9_7F4A_7C15)
    var reader = ReplyReader()
    for _ in 0..<15_000 {
      let reply = Self.mutate(Self.seeds[dice.below(Self.seeds.count)], &dice)
      if reader.read(reply, from: dice.below(4)) == .messages {
        #expect(reader.messages.allSatisfy { $0.isComplete && $0.start + $0.length <= reader.payload.count })
        for message in reader.messages { _ = ResponseDescription.of(reader.bytes(of: message)) }
      }
    }
  }

  @Test func theDialogueSurvivesMutatedRepliesInAnyPieces() {
    var dice = Dice(state: 42)
    var dialogue = ELMDialogue()
    var now: Instant = 0
    for _ in 0..<8_000 {
      now &+= Int64(dice.below(200)) * .millisecond
      _ = dialogue.expire(at: now)
      if dialogue.isIdle {
        if dialogue.hasUnexpectedText {
          dialogue.resynchronise(at: now)
        } else {
          dialogue.begin(Array("220101\r".utf8), deadline: now &+ .second)
        }
      }
      let bytes = Self.mutate(Self.seeds[dice.below(Self.seeds.count)], &dice)
      let cut = dice.below(bytes.count + 1)
      if dialogue.receive(Array(bytes[..<cut]), at: now).replied { _ = dialogue.reply[dialogue.bodyStart...] }
      if dialogue.receive(Array(bytes[cut...]), at: now).overflowed { dialogue.resynchronise(at: now) }
      #expect(dialogue.reply.count <= ELMDialogue.maxReplyLength && dialogue.unexpectedText.count <= 256)
    }
  }

  @Test func aReplyWithOneWrongCharacterIsRefusedOrDiffersOnlyInThatByte() {
    // Replies have no checksum: a changed data digit is a different value. Everything else is rejected.
    var ready = OBDVectorTests.asking(.bmsUDS)
    ready.adapter.answer("220101", "")
    var dice = Dice(state: 7)
    for index in 0..<(Vector.ev6.count - 1) {
      var reply = Vector.ev6
      reply[index] = [UInt8(ascii: "G"), 0xFE, UInt8(ascii: ":"), UInt8(ascii: "<")][dice.below(4)]
      var rig = ready
      rig.give(.received(.main, reply))
      #expect(rig.number("rpm") == nil || isBlank(Vector.ev6[index]), "at \(index)")
    }
  }

  @Test func theMachineSurvivesAnyInputInAnyOrderAndCompletesEveryQueryOnce() {
    for seed in 1...8 {
      var dice = Dice(state: UInt64(seed) &* 0x2545_F491_4F6C_DD1D)
      var machine = OBDMachine(rate: [20, 0, 1000, 0.001][seed % 4], allowRaw: seed % 2 == 0, phase: 0.5)
      var effects = Effects()
      var now: Instant = Int64(dice.below(1 << 40))
      var asked: CommandID = 0
      var cancelled: Set<CommandID> = []
      var completions: [CommandID: Int] = [:]
      for _ in 0..<2_000 {
        now &+= [0, .millisecond, 49 * .millisecond, 6 * .second, 3600 * .second][dice.below(5)]
        effects.removeAll()
        machine.handle(Self.input(&dice, &asked, &cancelled, machine), at: now, &effects)
        var sends = 0
        for effect in effects.list {
          if case .complete(let id, _) = effect { completions[id, default: 0] += 1 }
          if case .send = effect { sends += 1 }
        }
        #expect(sends <= 2)
        #expect(effects.readings.allSatisfy { machine.schema.properties.indices.contains($0.property) })
      }
      effects.removeAll()
      machine.handle(.stopping, at: now, &effects)
      for effect in effects.list { if case .complete(let id, _) = effect { completions[id, default: 0] += 1 } }
      for id in 1..<max(asked + 1, 2) where asked > 0 {
        #expect(completions[id] == 1 || (cancelled.contains(id) && completions[id] == nil), "query \(id) of seed \(seed)")
      }
      #expect(machine.nextWake == nil)
    }
  }

  private static func input(_ dice: inout Dice, _ asked: inout CommandID, _ cancelled: inout Set<CommandID>, _ machine: OBDMachine) -> Input
  {
    switch dice.below(40) {
    case 0: return .linkChanged(.main, .down("gone"))
    case 1, 2: return .linkChanged(.main, .up(maximumSend: dice.below(2) == 0 ? nil : 20, baud: dice.below(2) == 0 ? nil : 38400))
    case 3: return .sent(SendID(dice.below(100)), failure: dice.below(20) == 0 ? "refused" : nil)
    case 4: return .started(restored: ["request": mutate(Array("2101".utf8), &dice)], wall: WallTime(microseconds: .max))
    case 5: return .stored(key: "request", failure: "no space")
    case 6, 7, 8:
      asked += 1
      let requests = ["010C", "ATRV", "22F190", "ATZ", "04", "ATSH7E4", "", "0902"]
      let header: [String: Value] = dice.below(3) == 0 ? ["header": .string(["7E0", "18DA10F1", "7FF"][dice.below(3)])] : [:]
      return .perform(
        asked, .run(action: 0, arguments: header.merging(["request": .string(requests[dice.below(requests.count)])]) { $1 }))
    case 9:
      let id = CommandID(dice.below(Int(asked) + 1))
      cancelled.insert(id)
      return .cancelled(id)
    case 10: return .received("other", [1, 2, 3])
    case 11: return .received(.main, (0..<dice.below(600)).map { _ in dice.byte() })
    case 12..<24: return .received(.main, Array("OK\r\r>".utf8))
    case 24..<32: return .received(.main, dice.below(2) == 0 ? Vector.ev6 : mutate(seeds[dice.below(seeds.count)], &dice))
    default: return .wake
    }
  }

  @Test func aLinkThatGoesDownWithACommandOverdueIsSentNothing() {
    for end in [Input.linkChanged(.main, .down("gone")), .stopping] {
      var machine = OBDMachine()
      var effects = Effects()
      machine.handle(.linkChanged(.main, .up(maximumSend: nil)), at: 0, &effects)
      #expect(effects.list.contains(.send(.main, Array("ATZ\r".utf8), nil, secret: false)))
      effects.removeAll()
      machine.handle(end, at: 6 * .second, &effects)
      #expect(!effects.list.contains { if case .send = $0 { true } else { false } })
      #expect(machine.nextWake == nil)
    }
  }

  @Test func anHourOfRandomBytesIsSurvivedWithResets() {
    var rig = AdapterRig()
    rig.adapter.isMute = true
    var dice = Dice(state: 99)
    rig.start()
    for _ in 0..<3_600 {
      rig.run(for: .second)
      rig.give(.received(.main, (0..<64).map { _ in dice.byte() }))
      if rig.machine.nextWake == nil { rig.connect() }
    }
    #expect(rig.resets.count > 10)
    #expect(OBDMachine.batteryProperties.allSatisfy { rig.number($0) == nil })
    #expect(rig.machine.router.session.dialogue.reply.count <= ELMDialogue.maxReplyLength)
  }

  @Test func tenMegabytesWithoutAPromptResetTheLink() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.answer("2201019", "")
    rig.run(for: 60 * .millisecond)
    let chunk = [UInt8](repeating: UInt8(ascii: "7"), count: 10_240)
    for _ in 0..<1024 {
      rig.give(.received(.main, chunk))
      rig.run(for: 10 * .millisecond)
      #expect(rig.machine.router.session.dialogue.reply.count <= ELMDialogue.maxReplyLength)
    }
    #expect(rig.resets == ["the adapter's replies are unreadable; check baud rate and wiring"])
    #expect(rig.number("bad-replies") == 1)
    #expect((rig.text("last-bad-reply")?.count ?? 0) <= 200)
  }

  @Test func clocksAtTheirEndsAreSurvived() {
    for start in [Instant.max - 3 * .second, .min, 0, -1] {
      for rate in [20.0, 0, 1e-300, 1000, .infinity, .nan, -5] {
        var machine = OBDMachine(rate: rate, phase: .nan)
        var effects = Effects()
        machine.handle(.linkChanged(.main, .up(maximumSend: nil)), at: start, &effects)
        for step in 0..<60 {
          let reply = step == 0 ? "ELM327\r>" : step < 11 ? "OK\r>" : "NO DATA\r>"
          machine.handle(.received(.main, Array(reply.utf8)), at: step < 30 ? start : .max, &effects)
          machine.handle(.wake, at: step < 30 ? start : .max, &effects)
          _ = machine.nextWake
        }
      }
    }
  }
}
