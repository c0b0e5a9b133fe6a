// Hostile cars, clients and disks for libFuzzer: the bytes of an input are what comes over the link, with links, time,
// commands and leases among them. Whatever comes, the machine does not trap, publishes only what it declared, has one write
// at a time with the link, says Stop next when a driver is gone, no tilt without one and none that the car mistakes, wants
// no wake for ever in the past, and completes every command once.
// Built together with Sources/Protocols as one module, outside of the package.

/// Bytes 0xC0 to 0xCF steer; all others are what is heard next.
private enum Step: UInt8 {
  case hear = 0xC0, wake, pass, down, up, ask, cancel, sent, lease, leave, picture, restore, escape, speak, tilt, stop
}

private struct Ride {
  var machine: CarMachine
  var declared: Schema
  var effects = Effects()
  var now: Instant = 1
  var isUp = false
  var isHeld = false
  /// A driver whom the machine has accepted is gone, and no write since was a Stop.
  var owesStop = false
  /// The lease was accepted in an earlier turn.
  var isDriven = false
  var outstanding: SendID?
  var heard: [UInt8] = []
  var asked: CommandID = 0
  var cancelled: Set<CommandID> = []
  var completed: Set<CommandID> = []

  init(options: UInt8) {
    var values: [String: Value] = ["status-interval": .float([0, 1, 30, 3600][Int(options & 3)])]
    if options & 4 != 0 { values["dialect"] = .string("documented") }
    if options & 8 != 0 { values["tilt-rate"] = .float(20) }
    if options & 16 != 0 { values["allow-messages"] = .bool(true) }
    machine = CarMachine(Setup(options: values, links: options & 32 != 0 ? [:] : [.main: "tcp:car:12345"]))
    declared = machine.schema
  }

  mutating func give(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    for reading in effects.readings {
      hold(reading.property < declared.properties.count, "a reading of a property that is not declared yet")
      machine.check(reading, longest: 2000)
    }
    for effect in effects.list { check(effect) }
    isDriven = isHeld
    let queue = machine.router.motion.sender.queue
    hold(machine.router.reader.bufferedCount <= CarDecoder.limit && queue.commands.count <= CarSendQueue.maxCommands + 4, "unbounded")
    hold(machine.schema.properties.count <= CarProperty.allCases.count + 32, "the schema grows without end")
    hold(machine.router.motion.driving.isLeaseHeld == isHeld, "the machine and the device do not agree on who drives")
    machine.checkWake(at: now)
  }

  private mutating func check(_ effect: Effect) {
    switch effect {
    case .send(.main, let bytes, let id, _): write(bytes, id)
    case .sendUnlessBacklogged(_, let bytes, let id, _): write(bytes, id)
    case .resetLink: (isUp, outstanding, owesStop) = (false, nil, false)
    case .leaseLost:
      if isDriven, isUp { owesStop = true }
      (isHeld, isDriven) = (false, false)
    case .declare(let schema):
      hold(schema.properties.starts(with: declared.properties), "a property was taken back")
      declared = schema
    case .event(_, let text): hold(text.utf8.count <= 4000, "an event without end")
    case .complete(let id, _): hold(id > 0 && id <= asked && completed.insert(id).inserted, "command \(id) completed out of turn")
    default: break
    }
  }

  private mutating func write(_ bytes: [UInt8], _ id: SendID?) {
    hold(isUp && outstanding == nil, "a send over a link that is down or busy")
    outstanding = id
    hold(bytes.count <= CarFrame.maxLength, "a frame that the car cannot read at once")
    var decoder = CarDecoder()
    var rest = bytes[...]
    guard case .message(let message)? = decoder.next(&rest), rest.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) else {
      fatalError("what is said is not one frame")
    }
    hold(!owesStop || message.type == "Stop", "\(message.type) before Stop")
    if message.type == "Stop" { owesStop = false }
    guard message.type == "Gyro" else { return }
    hold(isHeld, "a tilt without a driver")
    let angles = String(decoding: message.body, as: UTF8.self).split(separator: ";").map(\.trimmed)
    hold(angles.count == 3 && !(angles[0].hasPrefix("-") && angles[1].hasPrefix("-")), "a tilt that the car mistakes")
    hold(!angles.contains("-0.000000"), "a negative zero")
  }

  mutating func take(_ step: Step, _ argument: UInt8) {
    switch step {
    case .hear: hear()
    case .wake:
      if let due = machine.nextWake { now = max(now, due) }
      give(.wake)
    case .pass: now += 1 << Int64(argument % 44)
    case .down: down()
    case .up:
      if isUp { down() }
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
    case .leave: leave()
    case .picture: picture(argument)
    case .restore:
      let kept = ["neutral": heard, "sensitivity": heard, "web-page": heard, "video-quality": heard]
      give(.started(restored: kept, wall: WallTime(microseconds: 0)))
    case .escape: heard.append(argument)
    case .speak: speak(argument)
    case .tilt: tilt(argument)
    case .stop:
      asked += 1
      give(.perform(asked, .run(action: CarAction.stop.rawValue, arguments: [:])))
    }
  }

  private mutating func down() {
    (isUp, outstanding, owesStop) = (false, nil, false)
    give(.linkChanged(.main, .down("gone")))
    isHeld = false
  }

  private mutating func leave() {
    guard isHeld else { return }
    (owesStop, isHeld, isDriven) = (isUp, false, false)
    give(.leaseEnded("done"))
  }

  private mutating func hear() {
    give(.received(.main, heard))
    heard = []
  }

  private mutating func picture(_ argument: UInt8) {
    switch argument % 4 {
    case 0: give(.linkChanged(.video, .up(maximumSend: nil)))
    case 1: give(.linkChanged(.video, .down("hung up")))
    case 2: give(.received(.video, Array("HTTP/1.0 200 OK\r\nContent-Type: image/jpeg\r\n\r\n".utf8) + [0xFF, 0xD8, 0xFF, 0xD9]))
    default:
      give(.received(.video, heard))
      heard = []
    }
  }

  /// A frame as the car would send it, with what was heard as its body.
  private mutating func speak(_ argument: UInt8) {
    let types = [
      "Gyro", "Modes", "Status", "InfoModes", "Message", "ButtonsOn", "ButtonsOff", "GyroStop", "ConnectionTest", "ConnectionTestStop",
    ]
    give(.received(.main, Array(types[Int(argument) % types.count].utf8) + Array("#$#".utf8) + heard + Array("%^%".utf8)))
    heard = []
  }

  private mutating func tilt(_ argument: UInt8) {
    asked += 1
    let angles: [Double] = [0, -0.0, 0.4, -0.4, -1e-7, 1.5, -1.5, .nan]
    let roll = angles[Int(argument & 7)], pitch = angles[Int(argument >> 3 & 7)]
    give(.perform(asked, .run(action: CarAction.tilt.rawValue, arguments: ["roll": .float(roll), "pitch": .float(pitch)])))
  }

  private mutating func ask(_ argument: UInt8) {
    asked += 1
    func set(_ property: CarProperty, _ value: Value) { give(.perform(asked, .set(property: property.rawValue, value))) }
    func run(_ action: CarAction, _ arguments: [String: Value] = [:]) {
      give(.perform(asked, .run(action: action.rawValue, arguments: arguments)))
    }
    let text = String(decoding: heard.prefix(1200), as: UTF8.self)
    switch argument & 31 {
    case 0: set(.mode, .string(String(argument >> 5 + 2)))
    case 1: set(.mode, .string(text))
    case 2: set(.leftButton, .bool(argument & 32 != 0))
    case 3: set(.rightButton, .bool(argument & 32 != 0))
    case 4: set(.video, .bool(true))
    case 5: set(.video, .bool(false))
    case 6: set(.sensitivity, .float(Double(argument) / 100))
    case 7: set(.neutralRoll, .float(Double(argument) / 50 - 2))
    case 8: set(.webPage, .string(text))
    case 9: set(.videoQuality, .string(["low", "medium", "high", text][Int(argument >> 6)]))
    case 10: run(.proceed)
    case 11: run(.modeInfo)
    case 12: run(.modeInfo, ["mode": .string(text)])
    case 13: run(.refresh)
    case 14: run(.neutral, ["position": .string(argument & 32 != 0 ? "here" : "horizontal")])
    case 15: run(.sendMessage, ["text": .string(text)])
    case 16: run(.shutDown)
    case 17: set(.mode, .string("3"))
    case 18: set(.mode, .string("1"))
    case 19: give(.stopping); asked -= 1
    default:
      asked -= 1
      for key in ["neutral", "sensitivity", "web-page", "video-quality"] {
        give(.stored(key: key, failure: argument & 32 != 0 ? "no space" : nil))
      }
    }
  }

  mutating func stop() {
    give(.stopping)
    for _ in 0..<12 {
      take(.sent, 0)
      take(.wake, 0)
    }
    down()
    for key in ["neutral", "sensitivity", "web-page", "video-quality"] { for _ in 0..<40 { give(.stored(key: key, failure: nil)) } }
    hold(machine.nextWake == nil, "a stopped machine wants a wake")
    for id in 0..<asked where !cancelled.contains(id + 1) { hold(completed.contains(id + 1), "command \(id + 1) was forgotten") }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var bytes = UnsafeBufferPointer(start: start, count: count)[...]
  guard let options = bytes.popFirst() else { return 0 }
  var ride = Ride(options: options)
  ride.take(.up, 0)
  while let byte = bytes.popFirst() {
    guard byte & 0xF0 == 0xC0 else { ride.heard.append(byte); continue }
    guard let step = Step(rawValue: byte) else { continue }
    let hasArgument = [.pass, .ask, .cancel, .sent, .escape, .picture, .speak, .tilt].contains(step)
    ride.take(step, hasArgument ? bytes.popFirst() ?? 0 : 0)
  }
  ride.take(.hear, 0)
  ride.stop()
  return 0
}
