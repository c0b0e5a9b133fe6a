// The trivia server in virtual time, with a client for each request and a shared store. It checks that each connection gets at most
// one response and is then closed.

import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

final class TriviaRig {
  let store: TriviaMemoryStore
  var faults: [TriviaFault] = []
  var now: Instant = 0
  /// The output with -v: events and bytes.
  private(set) var output = ""
  let service: TriviaService
  private var clients: UInt64 = 0

  init(requiresTokens: Bool = false, firstUser: Int = 18, facts: [TriviaFact] = TriviaFact.builtIn, seed: UInt64 = 1) {
    store = TriviaMemoryStore(firstUser: firstUser)
    store.load(facts, replacing: true)
    let source = Source(seed: seed)
    service = TriviaService(store, requiresTokens: requiresTokens, rounds: 2) { source.bytes($0) }
  }

  /// A response as a client reads it.
  struct Answer: Equatable {
    var status: Int
    var fields: [String: String]
    var body: String
    /// The number of writes.
    var writes: Int
    var bytes: [UInt8]
  }

  /// Sends bytes over a connection, split before `split`, and returns the reply until the connection is closed.
  func exchange(_ bytes: [UInt8], split: Int = 0) -> (bytes: [UInt8], writes: Int) {
    var host = Host(TriviaServer(service, client: clients, origin: 0, faults: faults), TriviaClient(), now: now)
    host.isTranscribed = true
    clients += 1
    host.connect()
    for piece in [bytes[..<split], bytes[split...]] where !piece.isEmpty && !host.isClosed {
      output += String(decoding: piece.prefix(host.machine.printableCount(of: Array(piece))), as: UTF8.self) + "\n"
      host.give(.received(.main, Array(piece)))
    }
    host.run(until: \.isClosed, atMost: 3600 * .second)
    now = host.now
    output += host.output.joined(separator: "\n")
    #expect(host.isClosed && host.machine.nextWake == nil)
    return (host.written, host.writes)
  }

  func ask(_ method: String, _ path: String, _ body: String? = nil, token: String? = nil) throws -> Answer {
    var head = "\(method) \(path) HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nContent-Type: application/json; charset=utf-8\r\n"
    if let body { head += "Content-Length: \(body.utf8.count)\r\n" }
    if let token { head += "Authorization: Bearer \(token)\r\n" }
    return try answer(Array("\(head)\r\n\(body ?? "")".utf8))
  }

  func answer(_ request: [UInt8], split: Int = 0) throws -> Answer {
    let (bytes, writes) = exchange(request, split: split)
    let end = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("\r\n\r\n".utf8)) })
    // The status line has the form of a request line: its path is the status.
    let head = ReceivedHTTPRequest(header: bytes[..<end])
    return Answer(
      status: Int(head.path) ?? 0, fields: head.fields, body: String(decoding: bytes[(end + 4)...], as: UTF8.self), writes: writes,
      bytes: bytes)
  }

  /// Registers Ada, who gets ID 18 in a new rig.
  @discardableResult func register(_ email: String = "ada@example.org", password: String = "secret1") throws -> Answer {
    try ask("POST", "/User/Register", #"{"name":"Ada","email":"\#(email)","password":"\#(password)"}"#)
  }

  func history(_ user: Int = 18) throws -> String { try ask("GET", "/User/History/\(user)").body }

  func vote(_ vote: Int, on fact: Int, by user: Int = 18) throws -> Answer {
    try ask("PUT", "/Trivia/Vote/\(fact)", #"{"userVote":\#(vote),"userId":\#(user),"triviaId":\#(fact)}"#)
  }
}

/// One connection to the server.
private struct TriviaClient: LinkedSurroundings {
  private(set) var written: [UInt8] = []
  private(set) var writes = 0
  private(set) var isClosed = false

  mutating func change(_ state: LinkState, at now: Instant) -> [Input] { [.linkChanged(.main, state)] }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, let id?, _):
      written += bytes
      writes += 1
      return [.sent(id, failure: nil)]
    case .resetLink: isClosed = true
    default: return nil
    }
    return []
  }
}

/// Random bytes for tests: the same in every run, and never the same twice in one.
private final class Source: @unchecked Sendable {
  private var random: SeededRandom
  init(seed: UInt64) { random = SeededRandom(seed: seed) }
  func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
}
