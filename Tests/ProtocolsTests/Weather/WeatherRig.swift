// The weather machine in virtual time, with a client that asks the simulated service or hands out what a test wrote, and a
// wall's clock that a test sets. It holds the machine to its contract: one request at a time, one end for each command.

import Peers
import Testing

@testable import Protocols

struct WeatherRig {
  var machine: WeatherMachine
  var now: Instant = 0
  /// The wall's clock in microseconds when `now` is 0: 2026-01-05T12:00:00Z.
  var wallOrigin: Int64 = 1_767_614_400_000_000
  /// What the service answers; nil: as the simulated one does.
  var answer: HTTPResponse?
  var faults: [ForecastFault] = []
  /// How long an answer takes; nil: it never comes.
  var delay: Nanoseconds? = 200 * .millisecond
  private(set) var asked: [(at: Instant, request: HTTPRequest)] = []
  private(set) var values: [String: Reading.Content] = [:]
  /// How old the temperature was when it was published last.
  private(set) var age: Nanoseconds = 0
  private(set) var disk: [String: [UInt8]] = [:]
  private(set) var status = ""
  private(set) var fault: String?
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var hasStopped = false
  /// Everything that a person may see or find in the journal.
  private(set) var words: [String] = []
  private var pending: (at: Instant, id: RequestID, response: HTTPResponse)?
  private var effects = Effects()
  private var inputs: [Input] = []

  init(_ options: [String: Value] = ["latitude": .float(52.52), "longitude": .float(13.41)]) throws {
    machine = try Self.machine(options)
  }

  static func machine(_ options: [String: Value]) throws -> WeatherMachine {
    var all = options
    for option in Kind.weather.options where all[option.name] == nil { all[option.name] = option.fallback }
    return try #require(try Kind.weather.make(Setup(options: all)) as? WeatherMachine)
  }

  mutating func start(for time: Nanoseconds = 0) {
    give(.started(restored: disk, wall: wall))
    run(for: time)
  }

  /// A daemon that was killed, and the next one with what the disk has.
  mutating func restart(_ options: [String: Value] = ["latitude": .float(52.52), "longitude": .float(13.41)], for time: Nanoseconds = 0)
    throws
  {
    machine = try Self.machine(options)
    (values, pending, asked, fault) = ([:], nil, [], nil)
    start(for: time)
  }

  var wall: WallTime { WallTime(microseconds: wallOrigin + now / .microsecond) }

  mutating func give(_ input: Input) {
    inputs.append(input)
    while !inputs.isEmpty {
      let input = inputs.removeFirst()
      effects.removeAll()
      machine.handle(input, at: now, &effects)
      for reading in effects.readings {
        let property = machine.schema.properties[reading.property]
        values[property.name] = reading.content
        if property.name == "temperature" { age = reading.age }
        switch reading.content {
        case .value(let value):
          #expect((try? property.rule.accept(value)) == value, "\(property.name): \(value)")
          words.append(value.text)
        case .absent(let reason): words.append(reason)
        }
      }
      for effect in effects.list { take(effect) }
    }
  }

  private mutating func take(_ effect: Effect) {
    switch effect {
    case .request(let id, let request):
      #expect(pending == nil, "one request at a time")
      asked.append((now, request))
      pending = (delay.map { now + $0 } ?? .max, id, answer ?? simulated(request))
    case .requestTime: inputs.append(.time(wall))
    case .store(let key, let bytes):
      disk[key] = bytes
      inputs.append(.stored(key: key, failure: nil))
    case .complete(let id, let result):
      results[id, default: []].append(result)
      words.append("\(result)")
    case .status(let word): status = word
    case .fault(let text):
      fault = text
      words.append(text ?? "")
    case .stopped: hasStopped = true
    case .progress: break
    default: Issue.record("weather does no such thing: \(effect)")
    }
  }

  /// What the simulated service answers to this, read back from its bytes.
  private func simulated(_ request: HTTPRequest) -> HTTPResponse {
    var service = OpenMeteo(client: UInt64(asked.count - 1), origin: 0, faults: faults)
    var effects = Effects()
    let path = "/" + request.url.split(separator: "/", maxSplits: 2).dropFirst(2).joined()
    let head = "\(request.method) \(path) HTTP/1.1\r\nHost: x\r\n\r\n"
    service.handle(.received(.main, Array(head.utf8)), at: now, &effects)
    let sends: [[UInt8]] = effects.list.compactMap { if case .send(_, let bytes, _, _) = $0 { bytes } else { nil } }
    let sent = sends.first ?? []
    let parts = String(decoding: sent, as: UTF8.self).split(separator: "\r\n\r\n", maxSplits: 1)
    let status = parts.first.flatMap { $0.split(separator: " ").dropFirst().first }.flatMap { Int($0) }
    guard let status else { return .failed("no HTTP") }
    let isHTML = parts.first?.contains("text/html") == true
    return .answered(status: status, type: isHTML ? "text/html" : "application/json", body: Array((parts.count > 1 ? parts[1] : "").utf8))
  }

  /// Lets virtual time pass.
  mutating func run(for time: Nanoseconds) {
    let end = now + time
    var turns = 0
    while let next = [pending?.at, machine.nextWake].compactMap(\.self).min(), next <= end {
      turns += 1
      guard turns < 100_000 else { Issue.record("time stands still at \(now)"); break }
      now = max(now, next)
      if let (at, id, response) = pending, at == next {
        pending = nil
        give(.response(id, response))
      } else {
        give(.wake)
      }
    }
    now = end
  }

  /// What never came never will.
  mutating func forgetRequest() { pending = nil }

  func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }

  mutating func refresh(_ id: CommandID = 1) { give(.perform(id, .run(action: 0, arguments: [:]))) }

  func isDone(_ id: CommandID = 1) -> Bool {
    if results[id]?.count == 1, case .success? = results[id]?.first { true } else { false }
  }

  func refusal(_ id: CommandID = 1) -> String? {
    if results[id]?.count == 1, case .failure(.refused(let code, let words))? = results[id]?.first { "\(code): \(words)" } else { nil }
  }
}

extension Nanoseconds {
  static let minute: Nanoseconds = 60 * .second
}
