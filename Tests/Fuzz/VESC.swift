// Hostile VESCs for libFuzzer: the bytes of an input are what comes over the link, with links, time, commands and leases
// among them. Whatever comes, the machine does not trap, publishes only what it declared, has one write at a time with the
// link, moves nothing without a lease, wants no wake for ever in the past, and completes every command once.
// Built together with Sources/Protocols as one module, outside of the package.

/// Bytes 0xC0 to 0xCF steer; all others are what is heard next.
private enum Step: UInt8 {
  case hear = 0xC0, wake, pass, down, up, ask, cancel, sent, lease, leave, answer, restore, escape
}

private struct Ride {
  var machine: VESCMachine
  var effects = Effects()
  var now: Instant = 1
  var isUp = false
  var isHeld = false
  var outstanding: SendID?
  var heard: [UInt8] = []
  var asked: CommandID = 0
  var cancelled: Set<CommandID> = []
  var completed: Set<CommandID> = []

  init?(options: UInt8) {
    var values: [String: Value] = ["rate": .float([20, 50, 0.1, 7][Int(options & 3)])]
    if options & 4 != 0 { values["allow-motion"] = .bool(true) }
    if options & 8 != 0 { values["can-id"] = .int(3) }
    if options & 16 != 0 { values["wheel-diameter"] = .float(85) }
    if options & 32 != 0 { values["cells"] = .int(10) }
    let modes = [Setup.Subsection("eco", ["current": .float(50), "speed": .float(15)])]
    guard let machine = try? VESCMachine(Setup(options: values, sections: ["mode": modes], phase: Double(options) / 256)) else {
      return nil
    }
    self.machine = machine
  }

  mutating func give(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    for reading in effects.readings { machine.check(reading, longest: 64) }
    for effect in effects.list { check(effect) }
    let (reader, queue) = (machine.router.session.reader, machine.router.requests.queue)
    hold(reader.bufferedCount <= 2 * VESCFrame.maxLength && queue.count <= VESCCommandQueue.limit + 1, "unbounded")
    machine.checkWake(at: now)
  }

  private mutating func check(_ effect: Effect) {
    switch effect {
    case .send(_, let bytes, let id, _):
      hold(isUp && outstanding == nil, "a send over a link that is down or busy")
      outstanding = id
      let frame = bytes.dropFirst(2).dropLast(3)
      let payload = frame.first == VESCCommand.forward.rawValue ? frame.dropFirst(2) : frame
      let moves = [5, 7, 10].contains(payload.first) || payload.first == 6 && payload.dropFirst().contains { $0 != 0 }
      hold(!moves || isHeld, "motion without a lease")
    case .resetLink: (isUp, outstanding) = (false, nil)
    case .leaseLost: isHeld = false
    case .complete(let id, _): hold(id > 0 && id <= asked && completed.insert(id).inserted, "command \(id) completed out of turn")
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
      (isUp, outstanding) = (false, nil)
      give(.linkChanged(.main, .down("gone")))
      isHeld = false
    case .up:
      (isUp, outstanding) = (true, nil)
      give(.linkChanged(.main, .up(maximumSend: nil)))
    case .ask: ask(argument)
    case .cancel:
      let id = asked &- CommandID(argument)
      cancelled.insert(id)
      give(.cancelled(id))
    case .sent:
      guard let id = outstanding else { return }
      outstanding = nil
      give(.sent(id, failure: argument == 1 ? "refused" : nil))
    case .lease:
      if isHeld { return }
      isHeld = true
      give(.leaseBegan(deadline: 300_000_000))
    case .leave:
      isHeld = false
      give(.leaseEnded("done"))
    case .answer: answer()
    case .restore: give(.started(restored: ["mode": heard, "limits": heard, "odometer": heard], wall: WallTime(microseconds: 0)))
    case .escape: heard.append(argument)
    }
  }

  private mutating func hear() {
    give(.received(.main, heard))
    heard = []
  }

  /// What was heard is the contents of an answer to the question that is on its way, in a frame as it should be.
  private mutating func answer() {
    if outstanding != nil { take(.sent, 0) }
    guard let request = machine.router.session.request else { return }
    give(.received(.main, VESCFrame.enclosing([request.command.rawValue] + heard.prefix(1000))))
    heard = []
  }

  private mutating func ask(_ argument: UInt8) {
    asked += 1
    let motion = VESCProperty.targetCurrent.rawValue
    switch argument % 8 {
    case 0: give(.perform(asked, .run(action: 0, arguments: [:])))
    case 1: give(.perform(asked, .set(property: VESCProperty.mode.rawValue, .string("eco"))))
    case 2: give(.perform(asked, .set(property: VESCProperty.mode.rawValue, .string("full"))))
    case 3: give(.stored(key: "limits", failure: argument > 8 ? "no space" : nil)); give(.perform(asked, .run(action: 1, arguments: [:])))
    default: give(.perform(asked, .set(property: motion + Int(argument % 4), .float(Double(argument) / 7))))
    }
    for key in ["mode", "limits", "odometer"] where argument & 0x40 == 0 { give(.stored(key: key, failure: nil)) }
  }

  mutating func stop() {
    give(.stopping)
    for _ in 0..<8 {
      take(.sent, 0)
      take(.wake, 0)
    }
    take(.down, 0)
    give(.stored(key: "mode", failure: nil))
    hold(machine.nextWake == nil, "a stopped machine wants a wake")
    for id in 0..<asked where !cancelled.contains(id + 1) { hold(completed.contains(id + 1), "command \(id + 1) was forgotten") }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var bytes = UnsafeBufferPointer(start: start, count: count)[...]
  guard let options = bytes.popFirst(), var ride = Ride(options: options) else { return 0 }
  ride.take(.up, 0)
  while let byte = bytes.popFirst() {
    guard byte & 0xF0 == 0xC0 else { ride.heard.append(byte); continue }
    guard let step = Step(rawValue: byte) else { continue }
    let hasArgument = [.pass, .ask, .cancel, .sent, .escape].contains(step)
    ride.take(step, hasArgument ? bytes.popFirst() ?? 0 : 0)
  }
  ride.take(.hear, 0)
  ride.stop()
  return 0
}
