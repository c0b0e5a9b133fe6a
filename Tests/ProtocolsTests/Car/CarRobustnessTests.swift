import Testing

@testable import Protocols

/// Hostile input: the machine does not trap, its memory is bounded, and without a lease the car stands still.
@Suite struct CarRobustnessTests {
  private static let texts =
    CarVector.all + [
      "Gyro#$#nan%^%\r\n", "Gyro#$#0,05%^%\r\n", "GyroStop#$#%^%\r\n", "InfoModes#$#about it%^%\r\n", "ConnectionTest#$#0.2%^%\r\n",
      "ConnectionTestStop#$#%^%\r\n", "Message#$#a#$#b%^%\r\n", "Status#$#Laps: 3;Driver: Ann;Temperature: 48,3 C%^%\r\n",
      "ButtonsOff#$#%^%\r\n",
      "Modes#$#a;A;;b%^%\r\n", "Status#$#%^%\r\n",
    ]
  private static let pictureResponse = Array("HTTP/1.0 200 OK\r\nContent-Type: image/jpeg\r\n\r\n".utf8) + [0xFF, 0xD8, 0xFF, 0xD9]

  /// Checks every effect of the machine.
  struct Watch {
    var isUp = false
    var isLeaseHeld = false
    /// Whether a lease has ended and no Stop was sent since.
    var needsStop = false
    var outstanding: SendID?
    var completions: [CommandID: Int] = [:]
    var violations: [String] = []

    mutating func check(_ effect: Effect, _ machine: CarMachine) {
      switch effect {
      case .send(.main, let bytes, let id, _): write(bytes, id)
      case .sendUnlessBacklogged(_, let bytes, let id, let most):
        if most < 8 * bytes.count { violations.append("the limit of unacknowledged bytes is too small") }
        write(bytes, id)
      case .complete(let id, _): completions[id, default: 0] += 1
      case .leaseLost:
        // A lease that was refused has moved nothing.
        if isLeaseHeld, isDriven { needsStop = true }
        (isLeaseHeld, isDriven) = (false, false)
      case .resetLink: (isUp, outstanding, needsStop) = (false, nil, false)
      default: break
      }
    }

    /// The lease was granted, not refused in the turn that began it.
    var isDriven = false

    private mutating func write(_ bytes: [UInt8], _ id: SendID?) {
      let text = String(decoding: bytes, as: UTF8.self)
      if !isUp || outstanding != nil { violations.append("a write over a link that is down or busy: \(text)") }
      outstanding = id
      if bytes.count > CarFrame.maxLength { violations.append("a frame that is too long") }
      let type = text.prefix { $0 != "#" }
      if needsStop, type != "Stop" { violations.append("\(type) before Stop") }
      if type == "Stop" { needsStop = false }
      guard type == "Gyro" else { return }
      if !isLeaseHeld { violations.append("a tilt without a driver") }
      if text.contains("-0.000000") { violations.append("a negative zero") }
      let angles = text.drop { $0 != "$" }.dropFirst(2).prefix { $0 != "%" }.split(separator: ";").map(\.trimmed)
      if angles.count != 3 || angles[0].hasPrefix("-") && angles[1].hasPrefix("-") {
        violations.append("a tilt that the car misinterprets: \(text)")
      }
    }
  }

  @Test func `the decoder survives mutated frames and decodes the next one`() {
    var dice = OBDRobustnessTests.Dice(state: 0x9E37_79B9_7F4A_7C15)
    var decoder = CarDecoder()
    for _ in 0..<6_000 {
      let bytes = OBDRobustnessTests.mutate(Array(Self.texts[dice.below(Self.texts.count)].utf8), &dice)
      let cut = dice.below(bytes.count + 1)
      _ = CarFrameTests.read(Array(bytes[..<cut]), &decoder) + CarFrameTests.read(Array(bytes[cut...]), &decoder)
      #expect(decoder.bufferedCount <= CarDecoder.limit)
      if dice.below(4) == 0 {
        _ = CarFrameTests.read(Array("%^%".utf8), &decoder)
        #expect(CarFrameTests.read(Array(CarVector.gyro.utf8), &decoder).count == 1)
      }
    }
  }

  @Test func `the machine survives any input in any order, and completes every command once`() {
    for seed in 1...16 {
      var dice = OBDRobustnessTests.Dice(state: UInt64(seed) &* 0x2545_F491_4F6C_DD1D)
      let options: [String: Value] = [
        "dialect": .string(seed % 3 == 0 ? "documented" : "as-built"), "status-interval": .float([0, 1, 30][seed % 3]),
        "allow-messages": .bool(seed % 2 == 0),
      ]
      let more: [String: Value] = seed % 4 == 0 ? ["tilt-rate": .float(20)] : [:]
      var machine = CarMachine(Setup(options: options.merging(more) { $1 }, links: [.main: "tcp:car:12345"]))
      var effects = Effects()
      var watch = Watch()
      var now: Instant = Int64(dice.below(1 << 40))
      var lastCommand: CommandID = 0
      var cancelled: Set<CommandID> = []
      for _ in 0..<4_000 {
        now &+= [0, .millisecond, 17 * .millisecond, 61 * .millisecond, 6 * .second][[0, 1, 2, 2, 3, 3, 4][dice.below(7)]]
        let input = Self.input(&dice, &lastCommand, &cancelled, watch)
        switch input {
        case .linkChanged(.main, .up): (watch.isUp, watch.outstanding, watch.needsStop) = (true, nil, false)
        case .linkChanged(.main, .down): (watch.isUp, watch.outstanding, watch.needsStop) = (false, nil, false)
        case .sent(watch.outstanding, _): watch.outstanding = nil
        case .leaseBegan: watch.isLeaseHeld = true
        case .leaseEnded:
          watch.needsStop = watch.isDriven && watch.isUp
          (watch.isLeaseHeld, watch.isDriven) = (false, false)
        default: break
        }
        effects.removeAll()
        machine.handle(input, at: now, &effects)
        for effect in effects.list { watch.check(effect, machine) }
        if !watch.isUp { watch.needsStop = false }
        watch.isDriven = watch.isLeaseHeld
        for reading in effects.readings { Self.check(reading, machine) }
        #expect(watch.violations == [], "seed \(seed)")
        if !watch.violations.isEmpty { return }
        let (reader, queue) = (machine.router.reader, machine.router.motion.sender.queue)
        #expect(queue.commands.count <= CarSendQueue.maxCommands + 4 && reader.bufferedCount <= CarDecoder.limit)
        #expect(machine.schema.properties.count <= CarProperty.allCases.count + 32)
      }
      effects.removeAll()
      machine.handle(.linkChanged(.main, .down("closed")), at: now, &effects)
      for key in ["neutral", "sensitivity", "web-page", "video-quality"] {
        for _ in 0..<40 { machine.handle(.stored(key: key, failure: nil), at: now, &effects) }
      }
      for effect in effects.list { watch.check(effect, machine) }
      for id in 1...max(lastCommand, 1) where lastCommand > 0 {
        let count = watch.completions[id]
        #expect(count == 1 || (cancelled.contains(id) && count == nil), "command \(id) of seed \(seed): \(count ?? 0)")
      }
      #expect(machine.nextWake == nil)
    }
  }

  private static func check(_ reading: Reading, _ machine: CarMachine) {
    guard machine.schema.properties.indices.contains(reading.property) else {
      Issue.record("a reading of an unknown property")
      return
    }
    guard case .value(let value) = reading.content else { return }
    let property = machine.schema.properties[reading.property]
    #expect(value.type == property.type && (try? property.rule.accept(value)) == value, "\(property.name) cannot be \(value.text)")
  }

  private static func input(
    _ dice: inout OBDRobustnessTests.Dice, _ lastCommand: inout CommandID, _ cancelled: inout Set<CommandID>, _ watch: Watch
  ) -> Input {
    func angle() -> Value { .float([0, -0.0, -0.4, 0.4, -1e-7, 1.5, -1.5, 9, .nan][dice.below(9)]) }
    switch dice.below(60) {
    case 0: return .linkChanged(.main, .down("gone"))
    case 1, 2: return .linkChanged(.main, .up(maximumSend: nil))
    case 3..<18: return .sent(watch.outstanding ?? SendID(dice.below(100)), failure: dice.below(30) == 0 ? "refused" : nil)
    case 18:
      return .stored(key: ["neutral", "sensitivity", "web-page", "x"][dice.below(4)], failure: dice.below(3) == 0 ? "no space" : nil)
    case 19..<26:
      lastCommand += 1
      return .perform(lastCommand, .run(action: 0, arguments: ["roll": angle(), "pitch": angle(), "yaw": angle()]))
    case 26..<30:
      lastCommand += 1
      let arguments: [String: Value] = [
        "mode": .string(["1", "3", "Tilt Steering", "?"][dice.below(4)]), "position": .string("here"), "text": .string("hi"),
      ]
      return .perform(lastCommand, .run(action: 1 + dice.below(8), arguments: dice.below(3) == 0 ? [:] : arguments))
    case 30..<36:
      lastCommand += 1
      let properties: [CarProperty] = [
        .mode, .mode, .leftButton, .rightButton, .video, .sensitivity, .neutralRoll, .webPage, .roll,
      ]
      let property = properties[dice.below(9)]
      let values: [Value] = [
        .string("3"), .string("10"), .string("tilt, lights"), .bool(true), .bool(false), .float(1), .string("http://x/"),
      ]
      return .perform(lastCommand, .set(property: property.rawValue, values[dice.below(7)]))
    case 36:
      let id = CommandID(dice.below(Int(lastCommand) + 1))
      cancelled.insert(id)
      return .cancelled(id)
    case 37..<40: return watch.isLeaseHeld ? .leaseEnded("done") : .leaseBegan(deadline: 300 * .millisecond)
    case 40: return .received(.main, (0..<dice.below(600)).map { _ in dice.byte() })
    case 41: return .linkChanged(.video, dice.below(2) == 0 ? .up(maximumSend: nil) : .down("hung up"))
    case 42: return .received(.video, dice.below(2) == 0 ? pictureResponse : [1, 2, 3])
    case 43: return .received("other", [1, 2, 3])
    case 44..<54:
      let text = Array(texts[dice.below(texts.count)].utf8)
      return .received(.main, dice.below(4) == 0 ? OBDRobustnessTests.mutate(text, &dice) : text)
    default: return .wake
    }
  }

  @Test func `a flood of messages does not fill memory or delay Stop`() {
    var rig = CarRig.driving()
    let flood = Array(String(repeating: CarVector.all.joined() + "x%^%Unknown#$#%^%", count: 100).utf8)
    for _ in 0..<20 {
      rig.give(.received(.main, flood))
      _ = rig.tilt(0.4, 0)
      rig.run(for: 16 * .millisecond)
    }
    #expect(rig.lost.isEmpty && rig.notes.count <= 24 && rig.events.count <= 20 && rig.number("bad-frames") == 2000)
    let end = rig.now
    rig.give(.leaseEnded("done"))
    #expect(rig.times(since: end, "Stop") == [0])
  }

  @Test func `a megabyte without a terminator is reported, and later messages are decoded`() {
    var rig = CarRig.ready()
    for _ in 0..<64 { rig.give(.received(.main, [UInt8](repeating: 0x23, count: 16 * 1024))) }
    #expect(rig.number("bad-frames") == 1 && rig.notes.last?.contains("more than 64 KiB without a terminator") == true)
    rig.receive("%^%" + CarVector.status)
    #expect(rig.number("temperature") == 48.3 && rig.resets.isEmpty && rig.status == "ready")
  }

  @Test func `a jump of the clock ends only the lease`() {
    var rig = CarRig.driving()
    rig.now += 7 * 86_400 * .second
    let end = rig.now
    _ = rig.tilt(0.4, 0)
    #expect(rig.lost == ["no setpoint for 300 ms"] && rig.times(since: end, "Stop") == [0])
    rig.run(for: .second)
    #expect(rig.resets.isEmpty && rig.status == "ready")
  }

  @Test func `times at the limits of the clock are survived`() {
    for start in [Instant.max - 3 * .second, Instant.min / 2, 0, -1] as [Instant] {
      var machine = CarMachine(Setup(links: [.main: "tcp:car:12345"]))
      var effects = Effects()
      machine.handle(.linkChanged(.main, .up(maximumSend: nil)), at: start, &effects)
      for step in 0..<40 {
        machine.handle(.sent(SendID(step), failure: nil), at: start, &effects)
        machine.handle(.received(.main, Array(CarVector.gyro.utf8)), at: start, &effects)
        machine.handle(.perform(CommandID(step), .set(property: CarProperty.video.rawValue, .bool(true))), at: start, &effects)
        machine.handle(.wake, at: start &+ Int64(step) * 10 * .millisecond, &effects)
      }
      machine.handle(.linkChanged(.main, .down("gone")), at: .max, &effects)
      #expect(machine.nextWake == nil)
    }
  }
}
