// The weather machine with an HTTP client that returns the responses of the simulated service or of a test. Checks that one request is in
// flight at a time.

import MachineTesting
import Peers
import Testing

@testable import Protocols

typealias WeatherRig = Host<WeatherMachine, WeatherClient>

struct WeatherClient: Surroundings {
  /// The response; nil: that of the simulated service.
  var answer: HTTPResponse?
  var faults: [ForecastFault] = []
  /// The delay of a response, or nil if it never arrives.
  var delay: Nanoseconds? = 200 * .millisecond
  fileprivate(set) var requests: [(at: Instant, request: HTTPRequest)] = []
  fileprivate var pending: (at: Instant, id: RequestID, response: HTTPResponse)?

  var nextWake: Instant? { pending?.at }

  mutating func wake(at now: Instant) -> [Input] {
    defer { pending = nil }
    return pending.map { [.response($0.id, $0.response)] } ?? []
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    guard case .request(let id, let request) = effect else { return nil }
    #expect(pending == nil, "one request at a time")
    requests.append((now, request))
    pending = (delay.map { now + $0 } ?? .max, id, answer ?? simulated(request, at: now))
    return []
  }

  /// The response of the simulated service, parsed from its bytes.
  private func simulated(_ request: HTTPRequest, at now: Instant) -> HTTPResponse {
    var service = OpenMeteo(client: UInt64(requests.count - 1), origin: 0, faults: faults)
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
}

extension WeatherRig {
  /// Creates a rig whose clock starts at 2026-01-05T12:00:00Z.
  init(_ options: [String: Value] = ["latitude": .float(52.52), "longitude": .float(13.41)]) throws {
    self.init(try Self.machine(options), WeatherClient(), wall: 1_767_614_400_000_000)
    isTranscribed = true
  }

  static func machine(_ options: [String: Value]) throws -> WeatherMachine {
    var all = options
    for option in Kind.weather.options where all[option.name] == nil { all[option.name] = option.defaultValue }
    return try #require(try Kind.weather.make(Setup(options: all)) as? WeatherMachine)
  }

  /// Replaces the machine as after a kill of the daemon, with the stored state.
  mutating func restart(_ options: [String: Value] = ["latitude": .float(52.52), "longitude": .float(13.41)], for time: Nanoseconds = 0)
    throws
  {
    replace(try Self.machine(options))
    (surroundings.pending, surroundings.requests) = (nil, [])
    start(for: time)
  }

  /// Discards the pending response.
  mutating func discardResponse() { surroundings.pending = nil }

  mutating func refresh(_ id: CommandID = 1) { perform(.run(action: 0, arguments: [:]), id: id) }
}

extension Nanoseconds {
  static let minute: Nanoseconds = 60 * .second
}
