// Hostile boards for libFuzzer: the bytes of an input are what a board says, with links, time and commands among them.
// Whatever comes, the machine does not trap, keeps its memory bounded, publishes only what it declared, has one send
// outstanding at most and only such as a board takes, wants no wake for ever in the past, and completes every command once.
// Built together with Sources/Protocols as one module, outside of the package.

/// Bytes 0x80 to 0x8F steer; all others are what the board says next.
private enum Step: UInt8 {
  case hear = 0x80, wake, pass, down, up, on, off, buzz, cancel, taken, failed, restore, name, stop
}

private struct Ride {
  let options: UInt8
  var machine: ELCommMachine
  var effects = Effects()
  var now: Instant = 1
  var isUp = false
  var heard: [UInt8] = []
  var asked: CommandID = 0
  var cancelled: Set<CommandID> = []
  var completed: Set<CommandID> = []
  var outstanding: SendID?
  var total = 0.0
  var stores: [String] = []

  init?(options: UInt8) {
    var given: [String: Value] = ["rate": .float([5, 10, 0.1, 1][Int(options & 3)])]
    if options & 4 != 0 { given["dialect"] = .string(options & 8 != 0 ? "documented" : "as-built") }
    if options & 16 != 0 { given["buzzer-limit"] = .float(1) }
    guard let machine = try? ELCommMachine(Setup(options: given)) else { return nil }
    self.machine = machine
    self.options = options
  }

  mutating func give(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    for reading in effects.readings { check(reading) }
    for effect in effects.list { check(effect) }
    let decoder = machine.dialogue.receiver.decoder
    hold(decoder.buffer.count <= ELCommDecoder.limit && decoder.lastBad.count <= ELCommDecoder.limit, "an unbounded decoder")
    machine.checkWake(at: now)
  }

  private mutating func check(_ reading: Reading) {
    machine.check(reading, longest: 300)
    guard reading.property == ELCommProperty.totalDistance.rawValue, case .value(let value) = reading.content, let distance = value.number
    else {
      return
    }
    hold(distance >= total, "the total falls from \(total) to \(distance)")
    total = distance
  }

  private mutating func check(_ effect: Effect) {
    switch effect {
    case .send(_, let bytes, let id, _):
      hold(isUp, "a send over no link")
      hold(outstanding == nil, "two sends at a time")
      // A probe that finds the dialect is two characters.
      let isProbe = options & 4 == 0 && bytes == Array("-0".utf8)
      hold(isProbe || [[45], [55], [66], [0x30], [0x31]].contains(bytes), "no word for a board: \(printable(bytes))")
      outstanding = id
    case .resetLink:
      isUp = false
      outstanding = nil
    case .complete(let id, _): hold(id > 0 && id <= asked && completed.insert(id).inserted, "command \(id) completed out of turn")
    case .store(let key, let bytes):
      hold(bytes.count <= 128, "an unbounded store")
      stores.append(key)
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
    case .up:
      (isUp, outstanding) = (true, nil)
      give(.linkChanged(.main, .up(maximumSend: nil)))
    case .on: ask(.set(property: ELCommProperty.buzzer.rawValue, .bool(true)))
    case .off: ask(.set(property: ELCommProperty.buzzer.rawValue, .bool(false)))
    case .buzz: buzz(argument)
    case .cancel:
      let id = asked &- CommandID(argument)
      cancelled.insert(id)
      give(.cancelled(id))
    case .taken, .failed: taken(step == .failed ? "busy" : nil)
    case .restore:
      // Another daemon, with whatever is on the disk.
      stop()
      guard var next = Ride(options: options) else { return }
      (next.now, next.heard) = (now, heard)
      self = next
      give(.started(restored: ["distance": heard, "name": heard, "dialect": heard], wall: WallTime(microseconds: 0)))
    case .name: ask(.set(property: ELCommProperty.name.rawValue, .string(String(decoding: heard, as: UTF8.self))))
    case .stop: stop()
    }
  }

  private mutating func hear() {
    give(.received(.main, heard))
    heard = []
  }

  /// The link takes what was sent, and the disk what was stored.
  private mutating func taken(_ failure: String?) {
    if let id = outstanding {
      outstanding = nil
      give(.sent(id, failure: failure))
    }
    while !stores.isEmpty { give(.stored(key: stores.removeFirst(), failure: failure)) }
  }

  private mutating func ask(_ command: Command) {
    asked += 1
    give(.perform(asked, command))
  }

  private mutating func buzz(_ argument: UInt8) {
    let times = ["2s", "500ms", "10", "11", "x", "", "0", "1e9"]
    ask(.run(action: 0, arguments: argument >= 8 ? ["hold": .bool(true)] : ["duration": .string(times[Int(argument)])]))
  }

  mutating func stop() {
    give(.stopping)
    taken(nil)
    taken(nil)
    (isUp, outstanding) = (false, nil)
    give(.linkChanged(.main, .down("the end")))
    taken(nil)
    hold(machine.nextWake == nil, "a stopped machine wants a wake")
    for id in 0..<asked where !cancelled.contains(id + 1) { hold(completed.contains(id + 1), "command \(id + 1) was forgotten") }
  }
}

/// The same bytes in one piece and one by one make the same messages.
private func checkDecoder(_ bytes: UnsafeBufferPointer<UInt8>) {
  var decoder = ELCommDecoder()
  for byte in bytes {
    guard let message = decoder.decode(byte) else { continue }
    hold(ELCommDecoder.speeds.contains(message.speed) && ELCommDecoder.charges.contains(message.battery), "no board's numbers")
    hold(abs(message.distance) <= 99_999_999, "no board's distance")
  }
  decoder.flush()
  let next = Array("12$88$1$0.35".utf8).compactMap { decoder.decode($0) }
  hold(next == [ELCommMessage(speed: 12, battery: 88, connected: true, distance: 35)], "a whole message is not read after a flush")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  checkDecoder(UnsafeBufferPointer(start: start, count: count))
  var bytes = UnsafeBufferPointer(start: start, count: count)[...]
  guard let options = bytes.popFirst(), var ride = Ride(options: options) else { return 0 }
  ride.take(.up, 0)
  while let byte = bytes.popFirst() {
    guard byte & 0xF0 == 0x80 else { ride.heard.append(byte); continue }
    guard let step = Step(rawValue: byte) else { continue }
    let hasArgument = step == .pass || step == .buzz || step == .cancel
    ride.take(step, hasArgument ? bytes.popFirst() ?? 0 : 0)
  }
  ride.take(.hear, 0)
  ride.stop()
  return 0
}
