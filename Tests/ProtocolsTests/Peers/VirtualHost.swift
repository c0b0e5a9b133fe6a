// The simulated adapter in virtual time: sends text, and records the output with its times.

import MachineTesting
import Peers
import Protocols
import Testing

typealias VirtualHost = Host<ELM327Adapter, Terminal>

struct Terminal: LinkedSurroundings {
  fileprivate(set) var sends: [(at: Instant, bytes: [UInt8])] = []

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: nil), at: now) }
  mutating func change(_ state: LinkState, at now: Instant) -> [Input] { [.linkChanged(.main, state)] }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, let id?, _):
      sends.append((now, bytes))
      return [.sent(id, failure: nil)]
    case .resetLink(_, let reason): return change(.down(reason), at: now)
    default: return nil
    }
  }
}

extension VirtualHost {
  init(
    _ faults: String..., car: any Car = ElectricCar(), chip: ELM327Adapter.Personality = .elm327, baud: Int? = nil, seed: UInt64 = 1,
    start: Instant = 0
  ) throws {
    try self.init(faults: faults, car: car, chip: chip, baud: baud, seed: seed, start: start)
  }

  init(
    faults: [String], car: any Car, chip: ELM327Adapter.Personality = .elm327, baud: Int? = nil, seed: UInt64 = 1, start: Instant = 0
  ) throws {
    let faults = try faults.map { try AdapterFault($0) }
    self.init(ELM327Adapter(car: car, personality: chip, baud: baud, faults: faults, seed: seed), Terminal(), now: start)
    self.start()
  }

  /// An initialised adapter: no echo, no spaces, headers, and the address of the battery.
  static func ready(_ faults: String..., car: any Car = ElectricCar(), baud: Int? = nil, seed: UInt64 = 1) throws -> VirtualHost {
    var host = try VirtualHost(car: car, baud: baud, seed: seed)
    host.machine = ELM327Adapter(car: car, baud: baud, faults: try faults.map { try AdapterFault($0) }, seed: seed)
    for command in ["ATE0", "ATS0", "ATH1", "ATSP6", "ATSH7E4"] { host.ask(command) }
    return host
  }

  /// An adapter with the car's protocol, after these commands: by default no echo, no spaces, and headers.
  static func open(
    _ car: any Car, _ faults: String..., chip: ELM327Adapter.Personality = .elm327, after commands: [String] = ["ATE0", "ATS0", "ATH1"]
  ) throws -> VirtualHost {
    var host = try VirtualHost(faults: faults, car: car, chip: chip)
    for command in ["ATSP\(car.bus.rawValue)"] + commands { host.ask(command) }
    return host
  }

  /// The lines of a reply without its prompt.
  mutating func lines(_ command: String) -> [String] {
    let lines: [Substring] = ask(command).split(separator: "\r")
    return lines.filter { $0 != ">" }.map(String.init)
  }

  /// Sends bytes and handles the immediate output.
  mutating func send(_ text: String) { send(Array(text.utf8)) }
  mutating func send(_ bytes: [UInt8]) { give(.received(.main, bytes)) }

  /// The output since the last call.
  mutating func printed() -> [UInt8] {
    defer { surroundings.sends = [] }
    return surroundings.sends.flatMap(\.bytes)
  }

  mutating func text() -> String { String(decoding: printed(), as: UTF8.self) }

  /// Sends a command and returns the reply with its prompt; 10 s at most.
  @discardableResult mutating func ask(_ command: String) -> String {
    _ = printed()
    send(command + "\r")
    run(until: { $0.surroundings.sends.last?.bytes.last == 0x3E || !$0.resets.isEmpty }, atMost: 10 * .second)
    return text()
  }

  /// How long a command takes to its prompt.
  mutating func duration(_ command: String) -> Nanoseconds {
    let start = now
    ask(command)
    return now - start
  }

  /// The bytes of the one message in a reply printed with headers and without spaces, or nil.
  static func message(in reply: String) -> [UInt8]? {
    let lines: [Substring] = reply.split(separator: "\r").filter { $0.count == 19 }
    let frames = lines.map { line in stride(from: 3, to: 19, by: 2).compactMap { UInt8(line.dropFirst($0).prefix(2), radix: 16) } }
    guard let first = frames.first, first.count == 8 else { return nil }
    if first[0] < 8 { return Array(first[1...Int(first[0])]) }
    let length = Int(first[0] & 0x0F) << 8 | Int(first[1])
    let bytes = first[2...] + frames.dropFirst().flatMap { $0.dropFirst() }
    return bytes.count >= length ? Array(bytes.prefix(length)) : nil
  }

  /// A big-endian number in a message.
  static func number(_ bytes: [UInt8], _ range: ClosedRange<Int>, signed: Bool = false) -> Int {
    let value = bytes[range].reduce(0) { $0 << 8 | Int($1) }
    let top = 1 << (range.count * 8 - 1)
    return signed && value >= top ? value - 2 * top : value
  }
}
