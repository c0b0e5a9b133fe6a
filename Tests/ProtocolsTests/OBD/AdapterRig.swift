// A machine and a scripted adapter in virtual time. The adapter replies as scripted by each test, and otherwise acts as a chip does.

import MachineTesting

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
  var bmsReply: [UInt8] = Vector.ev6
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
    case "220101", "2201019": return bmsReply
    case _ where command.hasPrefix("AT"): return Array("OK\r\r>".utf8)
    default: return Array("NO DATA\r\r>".utf8)
    }
  }

  /// Sends bytes unsolicited.
  mutating func say(_ text: String, at now: Instant) { due.append((now, Array(text.utf8))) }

  var nextBytes: Instant? { due.map(\.at).min() }

  mutating func give(at now: Instant) -> [UInt8] {
    guard let index = due.firstIndex(where: { $0.at <= now }) else { return [] }
    return due.remove(at: index).bytes
  }
}

typealias AdapterRig = Host<OBDMachine, ScriptedLink>

/// The link to it, a serial line.
struct ScriptedLink: LinkedSurroundings {
  var adapter = ScriptedAdapter()
  /// The baud rate, if it can be changed, and its changes.
  var baud: Int?
  private(set) var bauds: [Int] = []
  var adapterBaud = 38400

  var commands: [String] { adapter.heard.map(\.command) }
  var nextWake: Instant? { adapter.nextBytes }

  mutating func wake(at now: Instant) -> [Input] {
    [.received(.main, adapter.give(at: now).sent(at: adapterBaud, heardAt: baud ?? adapterBaud))]
  }

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: nil), at: now) }

  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    guard case .up = state else { return [.linkChanged(.main, state)] }
    if baud != nil { baud = 38400 }
    return [.linkChanged(.main, .up(maximumSend: nil, baud: baud))]
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, _, _): adapter.take(bytes.sent(at: baud ?? adapterBaud, heardAt: adapterBaud), at: now)
    case .setBaud(_, let baud):
      self.baud = baud
      bauds.append(baud)
    case .resetLink: break
    default: return nil
    }
    return []
  }
}

extension AdapterRig {
  /// Disk and clock reply only when a test has them reply.
  init(
    link: String = "", rate: Double = 20, allowRaw: Bool = false, phase: Double = 0, vehicle: VehicleChoice = .auto,
    pauseConditions: PauseConditions? = nil, at now: Instant = 0
  ) {
    let machine = OBDMachine(
      link: link, rate: rate, allowRaw: allowRaw, phase: phase, vehicle: vehicle, isFastOnly: true, pauseConditions: pauseConditions)
    self.init(machine, ScriptedLink(), now: now)
    (diskIsQuick, clockIsQuick) = (false, false)
  }

  /// What the disk was given.
  var stored: [String: String] {
    Dictionary(pendingStores.map { ($0.key, String(decoding: $0.bytes, as: UTF8.self)) }, uniquingKeysWith: { $1 })
  }
  /// The events of clearing trouble codes, with their names.
  var clearingEvents: [String] { zip(eventNames, events).filter { $0.0 != "vehicle" }.map { "\($0): \($1)" } }

  mutating func hear(_ text: String) { give(.received(.main, Array(text.utf8))) }

  /// Runs until a command was received this often, or for a minute.
  mutating func run(untilHeard command: String, times: Int = 1) { run(until: { $0.heard(command) >= times }) }

  func heard(_ command: String) -> Int { surroundings.adapter.heard.count { $0.command == command } }

  @discardableResult mutating func query(_ request: String, header: String? = nil, id: CommandID = 1) -> CommandID {
    let header = header.map { ["header": Value.string($0)] } ?? [:]
    return perform(.run(action: 0, arguments: ["request": .string(request)].merging(header) { $1 }), id: id)
  }

  /// The rows of a query's only result, or nil.
  func rows(_ id: CommandID = 1) -> [[String]]? { report(id)?.rows }
}
