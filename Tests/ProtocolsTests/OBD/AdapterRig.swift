// A machine and a scripted adapter in virtual time. The adapter replies as scripted by each test, and otherwise acts as a chip does.

@testable import Protocols

/// The other end of the link.
struct ScriptedAdapter {
  /// Replies by command, prompt included; the last one repeats. An empty reply means a timeout.
  var replies: [String: [[UInt8]]] = [:]
  /// The reply delay by command; by default 1 ms, and 600 ms for a reset.
  var delays: [String: Nanoseconds] = [:]
  var echoes = false
  /// Accepts commands and never replies.
  var isMute = false
  /// The reply to the first supported BMS request.
  var page: [UInt8] = Vector.ev6
  private(set) var heard: [(at: Instant, command: String)] = []
  private(set) var stops = 0
  /// Single spaces, which resynchronise the dialogue.
  private(set) var spaces = 0
  private(set) var due: [(at: Instant, bytes: [UInt8])] = []
  private var input = ""

  mutating func answer(_ command: String, _ texts: String...) { replies[command] = texts.map { Array($0.utf8) } }
  mutating func answer(_ command: String, bytes: [UInt8]...) { replies[command] = bytes }
  mutating func sleepFor(_ command: String, _ time: Nanoseconds) { delays[command] = time }

  /// Takes bytes from the machine.
  mutating func take(_ bytes: [UInt8], at now: Instant) {
    if bytes == [space] { spaces += 1 }
    for byte in bytes {
      if !due.isEmpty {
        // Any byte stops a running command; the byte itself is lost.
        stops += 1
        due = [(now + .millisecond, Array("STOPPED\r\r>".utf8))]
      } else if byte == 13 {
        hear(input.filter { $0 != " " }, at: now)
        input = ""
      } else {
        input.append(Character(UnicodeScalar(byte)))
      }
    }
  }

  private mutating func hear(_ command: String, at now: Instant) {
    heard.append((now, command))
    let reply = reply(to: command)
    if reply.isEmpty || isMute { return }
    let delay = delays[command] ?? (command == "ATZ" ? 600 * .millisecond : .millisecond)
    due.append((now + delay, (echoes ? Array(command.utf8) + [13] : []) + reply))
  }

  private mutating func reply(to command: String) -> [UInt8] {
    if var script = replies[command], let first = script.first {
      if script.count > 1 { script.removeFirst() }
      replies[command] = script
      return first
    }
    switch command {
    case "ATZ": return Array("\r\rELM327 v1.5\r\r>".utf8)
    case "ATI": return Array("ELM327 v1.5\r\r>".utf8)
    case "STI": return Array("?\r\r>".utf8)
    case "220101", "2201019": return page
    case _ where command.hasPrefix("AT"): return Array("OK\r\r>".utf8)
    default: return Array("NO DATA\r\r>".utf8)
    }
  }

  /// Sends bytes unasked.
  mutating func say(_ text: String, at now: Instant) { due.append((now, Array(text.utf8))) }

  var nextBytes: Instant? { due.map(\.at).min() }

  mutating func give(at now: Instant) -> [UInt8] {
    guard let index = due.firstIndex(where: { $0.at <= now }) else { return [] }
    return due.remove(at: index).bytes
  }
}

struct AdapterRig {
  var machine: OBDMachine
  var adapter = ScriptedAdapter()
  var now: Instant
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var status = ""
  private(set) var fault: String?
  private(set) var faults: [String] = []
  private(set) var notes: [String] = []
  private(set) var resets: [String] = []
  private(set) var events: [String] = []
  private(set) var asksTime = 0
  private(set) var stored: [String: String] = [:]
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var idleWakes = 0
  /// The baud rate, if it can be changed, and its changes.
  var baud: Int?
  private(set) var bauds: [Int] = []
  var adapterBaud = 38400
  private var effects = Effects()

  init(
    link: String = "", rate: Double = 20, allowRaw: Bool = false, phase: Double = 0, vehicle: VehicleChoice = .auto, care: CarCare? = nil,
    at now: Instant = 0
  ) {
    machine = OBDMachine(
      link: link, rate: rate, allowRaw: allowRaw, phase: phase, vehicle: vehicle, isFastOnly: true, care: care)
    self.now = now
  }

  mutating func start(restored: [String: [UInt8]] = [:]) {
    give(.started(restored: restored, wall: WallTime(microseconds: 0)))
    connect()
  }

  mutating func connect() {
    if baud != nil { baud = 38400 }
    give(.linkChanged(.main, .up(maximumSend: nil, baud: baud)))
  }

  /// Starts, and runs until the first poll was answered.
  mutating func startPolling() {
    start()
    run(for: 2 * .second)
  }

  mutating func give(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    for reading in effects.readings { values[machine.schema.properties[reading.property].name] = reading.content }
    for effect in effects.list { note(effect) }
  }

  private mutating func note(_ effect: Effect) {
    switch effect {
    case .send(_, let bytes, _, _): adapter.take(bytes.sent(at: baud ?? adapterBaud, heardAt: adapterBaud), at: now)
    case .setBaud(_, let baud):
      self.baud = baud
      bauds.append(baud)
    case .complete(let id, let result): results[id, default: []].append(result)
    case .status(let word): status = word
    case .fault(let words):
      fault = words
      if let words { faults.append(words) }
    case .note(let text): notes.append(text)
    case .resetLink(_, let reason): resets.append(reason)
    case .event(let name, let text): events.append("\(name): \(text)")
    case .requestTime: asksTime += 1
    case .store(let key, let bytes): stored[key] = String(decoding: bytes, as: UTF8.self)
    default: break
    }
  }

  mutating func hear(_ text: String) { give(.received(.main, Array(text.utf8))) }

  /// Advances virtual time.
  mutating func run(for time: Nanoseconds) {
    let end = now + time
    while step(before: end) {}
    now = end
  }

  /// Processes the next event until then; returns false if there is none.
  private mutating func step(before end: Instant) -> Bool {
    let wake = machine.nextWake ?? .max
    let bytes = adapter.nextBytes ?? .max
    let next = min(wake, bytes)
    guard next <= end else { return false }
    now = max(now, next)
    if bytes <= wake {
      give(.received(.main, adapter.give(at: now).sent(at: adapterBaud, heardAt: baud ?? adapterBaud)))
    } else {
      give(.wake)
      // A wake that does nothing and requests the same time again would loop.
      if effects.isEmpty && machine.nextWake == wake { idleWakes += 1; return false }
    }
    return true
  }

  /// Runs until a command was received this often, or for a minute.
  mutating func run(untilHeard command: String, times: Int = 1) {
    let end = now + 60 * .second
    while heard(command) < times, step(before: end) {}
  }

  func heard(_ command: String) -> Int { adapter.heard.count { $0.command == command } }
  var commands: [String] { adapter.heard.map(\.command) }

  func number(_ name: String) -> Double? {
    if case .value(let value)? = values[name] { value.number } else { nil }
  }

  func text(_ name: String) -> String? {
    if case .value(let value)? = values[name] { value.text } else { nil }
  }

  func absence(_ name: String) -> String? {
    if case .absent(let reason)? = values[name] { reason } else { nil }
  }

  mutating func query(_ request: String, header: String? = nil, id: CommandID = 1) {
    var arguments: [String: Value] = ["request": .string(request)]
    if let header { arguments["header"] = .string(header) }
    give(.perform(id, .run(action: 0, arguments: arguments)))
  }

  /// The rows of a query's only result, or nil.
  func rows(_ id: CommandID = 1) -> [[String]]? {
    guard results[id]?.count == 1, case .success(let report)? = results[id]?.first else { return nil }
    return report.rows
  }

  func refusal(_ id: CommandID = 1) -> CommandError? {
    guard results[id]?.count == 1, case .failure(let error)? = results[id]?.first else { return nil }
    return error
  }
}
