// Hostile adapters for libFuzzer: the bytes of an input are what an adapter says, with links, time and questions among
// them. Whatever comes, the machine does not trap, publishes only what it declared, never sends what a command cannot
// be, wants no wake for ever in the past, and completes every question once.
// Built together with Sources/Protocols as one module, outside of the package.

/// Bytes 0x80 to 0x8F steer; all others are what the adapter says next.
private enum Step: UInt8 {
  case hear = 0x80, wake, pass, down, up, ask, cancel, answerSetup, flood, wakeEarly, restore, stop
}

private struct Ride {
  var machine: OBDMachine
  var effects = Effects()
  var now: Instant = 0
  var isUp = false
  var heard: [UInt8] = []
  var command: [UInt8] = []
  var asked: CommandID = 0
  var cancelled: Set<CommandID> = []
  var completed: Set<CommandID> = []

  init(options: UInt8) {
    machine = OBDMachine(rate: [20, 0, 1000, 0.001][Int(options & 3)], allowRaw: options & 4 != 0, phase: Double(options >> 3) / 32)
    now = options & 0x40 != 0 ? -3_000_000_000 : 1
  }

  mutating func give(_ input: Input) {
    effects.removeAll()
    command = []
    machine.handle(input, at: now, &effects)
    for reading in effects.readings { machine.check(reading, longest: 300) }
    for effect in effects.list { check(effect) }
    hold(
      machine.router.session.dialogue.reply.count <= ELMDialogue.maxReplyLength
        && machine.router.session.dialogue.unexpectedText.count <= 256,
      "an unbounded dialogue")
    hold(machine.router.clients.queries.count <= Queries.maxWaiting, "an unbounded queue")
    machine.checkWake(at: now)
  }

  private mutating func check(_ effect: Effect) {
    switch effect {
    case .send(_, let bytes, _, _):
      hold(isUp, "a send over no link")
      let isCommand = bytes.last == carriageReturn && bytes.dropLast().allSatisfy { $0 >= space && $0 < 0x7F && $0 != prompt }
      hold(bytes == [space] || isCommand, "no command: \(printable(bytes))")
      command = bytes
    case .resetLink: isUp = false
    case .complete(let id, _): hold(id > 0 && id <= asked && completed.insert(id).inserted, "question \(id) completed out of turn")
    default: break
    }
  }

  mutating func take(_ step: Step, _ argument: UInt8) {
    switch step {
    case .hear: hear()
    case .wake:
      if let due = machine.nextWake { now = max(now, due) }
      give(.wake)
    case .pass: now += 1 << Int64(argument % 44)
    case .down:
      isUp = false
      give(.linkChanged(.main, .down("gone")))
    case .up:
      isUp = true
      give(.linkChanged(.main, .up(maximumSend: nil)))
    case .ask: ask(argument)
    case .cancel:
      let id = asked &- CommandID(argument)
      cancelled.insert(id)
      give(.cancelled(id))
    case .answerSetup: answerSetup()
    case .flood:
      // Twice is more than a reply can be.
      if let last = heard.last { give(.received(.main, heard + Array(repeating: last, count: ELMDialogue.maxReplyLength * 2 / 3))) }
    case .wakeEarly: give(.wake)
    case .restore: give(.started(restored: ["request": heard], wall: WallTime(microseconds: 0)))
    case .stop: stop()
    }
  }

  private mutating func hear() {
    give(.received(.main, heard))
    heard = []
  }

  /// What was heard is the question; the argument chooses a header.
  private mutating func ask(_ argument: UInt8) {
    asked += 1
    var arguments: [String: Value] = ["request": .string(String(decoding: heard, as: UTF8.self))]
    let headers = ["7E0", "18DA10F1", "7FF", "7DF", "1FFFFFFF", "7e4", "é"]
    if argument > 0 { arguments["header"] = .string(headers[Int(argument) % headers.count]) }
    heard = []
    give(.perform(asked, .run(action: 0, arguments: arguments)))
  }

  /// A well-behaved adapter, as long as it is asked for settings.
  private mutating func answerSetup() {
    for _ in 0..<30 {
      if let due = machine.nextWake, command.isEmpty { now = max(now, due); give(.wake) }
      switch String(decoding: command.dropLast(), as: UTF8.self) {
      case "ATZ", "ATI": give(.received(.main, Array("ELM327 v1.5\r\r>".utf8)))
      case "STI": give(.received(.main, Array("?\r\r>".utf8)))
      case let setting where setting.hasPrefix("AT"): give(.received(.main, Array("OK\r\r>".utf8)))
      case "" where machine.nextWake != nil: continue
      default: return
      }
    }
  }

  mutating func stop() {
    give(.stopping)
    isUp = false
    hold(machine.nextWake == nil, "a stopped machine wants a wake")
    for id in 0..<asked where !cancelled.contains(id + 1) { hold(completed.contains(id + 1), "question \(id + 1) was forgotten") }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var bytes = UnsafeBufferPointer(start: start, count: count)[...]
  guard let options = bytes.popFirst() else { return 0 }
  var ride = Ride(options: options)
  ride.take(.up, 0)
  while let byte = bytes.popFirst() {
    guard byte & 0xF0 == 0x80 else { ride.heard.append(byte); continue }
    guard let step = Step(rawValue: byte) else { continue }
    let hasArgument = step == .pass || step == .ask || step == .cancel
    ride.take(step, hasArgument ? bytes.popFirst() ?? 0 : 0)
  }
  ride.take(.hear, 0)
  ride.stop()
  return 0
}
