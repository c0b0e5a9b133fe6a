// The toy machine in virtual time: with the simulated web server or what a test has it answer, with a disk, a wall's clock, and a
// toy that comes to the port on which the machine listens. It holds the machine to its contract: one end for each command, nobody
// listening but for a setting of the Wi-Fi, no request but for a reason.

import Peers
import Testing

@testable import Protocols

final class ToyRig {
  var machine: ToyMachine
  var now: Instant = 1000 * .second
  /// 2026-01-05T12:00:00Z.
  var wall: Int64 = 1_767_614_400_000_000
  let trivia: TriviaRig
  /// What the server answers; nil: as the simulated one does.
  var answer: ((HTTPRequest) -> HTTPResponse?)?
  /// The server is not to be reached.
  var isOffline = false
  var diskWorks = true
  /// The machine has no right to its port.
  var portTrouble: String?
  var toy: TriviaToy?
  private(set) var asked: [HTTPRequest] = []
  var disk: [String: [UInt8]] = [:]
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var ages: [String: Nanoseconds] = [:]
  private(set) var status = ""
  private(set) var fault: String?
  private var effects = Effects()
  private(set) var events: [String] = []
  private(set) var notes: [String] = []
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var progress: [CommandID: [Report]] = [:]
  private(set) var isListening = false
  private(set) var dialled: String?
  private(set) var isConnected = false
  private(set) var sends: [(at: Instant, text: String, secret: Bool)] = []
  /// Everything that a person may see or find in the journal, and what was recorded.
  private(set) var words: [String] = []
  private(set) var hasStopped = false
  private var lastID: CommandID = 0
  private var inputs: [Input] = []
  private var isTurning = false
  private static let toyLink: LinkName = "phone"

  init(_ options: [String: Value] = [:], requiresTokens: Bool = false) throws {
    trivia = TriviaRig(requiresTokens: requiresTokens)
    machine = try Self.machine(options)
  }

  static func machine(_ options: [String: Value]) throws -> ToyMachine {
    var all = options
    for option in Kind.toy.options where all[option.name] == nil { all[option.name] = option.fallback }
    return try #require(try Kind.toy.make(Setup(options: all)) as? ToyMachine)
  }

  func start() { give(.started(restored: disk, wall: WallTime(microseconds: wall))) }

  /// Somebody who has registered; their toy has played so many facts.
  static func loggedIn(facts: Int = 0, _ options: [String: Value] = [:], requiresTokens: Bool = false) throws -> ToyRig {
    let rig = try ToyRig(options, requiresTokens: requiresTokens)
    rig.start()
    let id = rig.run("register", ["name": .string("Ada"), "email": .string("ada@example.org"), "password": .string("secret1")])
    #expect(rig.report(id)?.text == "registered and logged in as user 18")
    for _ in 0..<facts { rig.hear() }
    return rig
  }

  /// The toy tells the server that it has played one fact more.
  func hear() { _ = trivia.exchange(Array("GET /User/History/18/1 HTTP/1.1\r\nHost: x\r\n\r\n".utf8)) }

  /// A daemon that was killed, and the next one with what the disk has.
  func restart(_ options: [String: Value] = [:], after time: Nanoseconds = .second) throws {
    machine = try Self.machine(options)
    (values, isListening, isConnected, events) = ([:], false, false, [])
    now += time
    wall += time / .microsecond
    start()
  }

  @discardableResult func run(_ action: String, _ arguments: [String: Value] = [:]) -> CommandID {
    lastID += 1
    let index = machine.schema.actions.firstIndex { $0.name == action } ?? -1
    give(.perform(lastID, .run(action: index, arguments: arguments)))
    return lastID
  }

  @discardableResult func vote(_ fact: Int, _ vote: String) -> CommandID {
    run("vote", ["id": .int(fact), "vote": .string(vote)])
  }

  func cancel(_ id: CommandID) { give(.cancelled(id)) }

  // MARK: Time

  func run(for time: Nanoseconds) {
    let end = now + time
    var turns = 0
    while let next = [machine.nextWake, toy?.nextWake].compactMap(\.self).min(), next <= end {
      turns += 1
      guard turns < 100_000 else { Issue.record("time stands still at \(now)"); break }
      wall += (max(next, now) - now) / .microsecond
      now = max(now, next)
      if machine.nextWake.map({ $0 <= now }) == true { give(.wake) }
      if toy?.nextWake.map({ $0 <= now }) == true { giveToy(.wake) }
    }
    wall += max(0, end - now) / .microsecond
    now = end
  }

  /// Inputs that arise while another is dealt with wait for their turn, as with a device.
  func give(_ input: Input) {
    inputs.append(input)
    guard !isTurning else { return }
    isTurning = true
    while !inputs.isEmpty { turn(inputs.removeFirst()) }
    isTurning = false
  }

  private func turn(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    for reading in effects.readings {
      let property = machine.schema.properties[reading.property]
      values[property.name] = reading.content
      ages[property.name] = reading.age
      switch reading.content {
      case .value(let value):
        #expect((try? property.rule.accept(value)) == value, "\(property.name): \(value)")
        words.append(value.text)
      case .absent(let reason): words.append(reason)
      }
    }
    for effect in effects.list { take(effect) }
  }

  private func take(_ effect: Effect) {
    switch effect {
    case .request(let id, let request):
      asked.append(request)
      let response =
        isOffline ? .failed("\(request.url.split(separator: "/")[1]) cannot be reached") : answer?(request) ?? simulated(request)
      if answer != nil, answer?(request) == nil, !isOffline { return }
      give(.response(id, response))
    case .requestTime: give(.time(WallTime(microseconds: wall)))
    case .store(let key, let bytes):
      if diskWorks { disk[key] = bytes.isEmpty ? nil : bytes }
      give(.stored(key: key, failure: diskWorks ? nil : "no space"))
    case .complete(let id, let result):
      results[id, default: []].append(result)
      words.append("\(result)")
    case .progress(let id, let report):
      progress[id, default: []].append(report)
      words.append("\(report)")
    case .status(let word): status = word
    case .fault(let text):
      fault = text
      words.append(text ?? "")
    case .event(_, let text):
      events.append(text)
      words.append(text)
    case .note(let text):
      notes.append(text)
      words.append(text)
    case .stopped: hasStopped = true
    case .listen(ToySetup.link, let place, let network):
      #expect(place == "0.0.0.0:8080" && network?.description == "192.168.4.0/24" && !isListening)
      if let portTrouble { give(.linkChanged(ToySetup.link, .down(portTrouble))) } else { isListening = true }
    case .openLink(ToySetup.link, let url): dialled = url
    case .closeLink(ToySetup.link):
      (isListening, dialled) = (false, nil)
      if isConnected { disconnectToy() }
    case .resetLink(ToySetup.link, let reason): lose(reason)
    case .send(ToySetup.link, let bytes, _, let secret):
      #expect(isConnected)
      sends.append((now, String(decoding: bytes, as: UTF8.self), secret))
      if !secret { words.append(String(decoding: bytes, as: UTF8.self)) }
      giveToy(.received(Self.toyLink, bytes))
    default: Issue.record("a toy's machine does no such thing: \(effect)")
    }
  }

  private func simulated(_ request: HTTPRequest) -> HTTPResponse {
    let path = "/" + request.url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true).dropFirst(2).joined()
    var text = "\(request.method) \(path) HTTP/1.1\r\nHost: x\r\n"
    for (name, value) in request.headers { text += "\(name): \(value)\r\n" }
    let bytes = Array("\(text)Content-Length: \(request.body.count)\r\n\r\n".utf8) + request.body
    let reply = String(decoding: trivia.exchange(bytes).bytes, as: UTF8.self)
    guard let end = reply.range(of: "\r\n\r\n"), let status = Int(reply.split(separator: " ")[1]) else { return .failed("no HTTP") }
    let type = reply.contains("text/html") ? "text/html" : reply.contains("application/json") ? "application/json" : nil
    return .answered(status: status, type: type, body: Array(reply[end.upperBound...].utf8))
  }

  // MARK: The toy

  /// Somebody connects who is no toy of ours: a test speaks for it.
  func come() {
    isConnected = true
    give(.linkChanged(ToySetup.link, .up(maximumSend: nil)))
  }

  func say(_ text: String) { give(.received(ToySetup.link, Array(text.utf8))) }

  func lose(_ reason: String) {
    guard isConnected else { return }
    disconnectToy()
    give(.linkChanged(ToySetup.link, .down(reason)))
  }

  private func disconnectToy() {
    isConnected = false
    if toy != nil { giveToy(.linkChanged(Self.toyLink, .down("closed"))) }
  }

  func giveToy(_ input: Input) {
    guard toy != nil else { return }
    var effects = Effects()
    toy?.handle(input, at: now, &effects)
    for effect in effects.list {
      switch effect {
      case .openLink(Self.toyLink, _):
        guard isListening, !isConnected else {
          giveToy(.linkChanged(Self.toyLink, .down("refused")))
          continue
        }
        isConnected = true
        giveToy(.linkChanged(Self.toyLink, .up(maximumSend: nil)))
        give(.linkChanged(ToySetup.link, .up(maximumSend: nil)))
      case .send(Self.toyLink, let bytes, let id?, _):
        if isConnected { give(.received(ToySetup.link, bytes)) }
        giveToy(.sent(id, failure: nil))
      case .closeLink(Self.toyLink), .resetLink(Self.toyLink, _):
        if isConnected {
          isConnected = false
          give(.linkChanged(ToySetup.link, .down("the toy closed the connection")))
        }
      default: break
      }
    }
  }

  // MARK: What came of it

  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }

  func outcome(_ id: CommandID) -> Result<Report, CommandError>? {
    guard let all = results[id] else { return nil }
    #expect(all.count == 1, "a command ends once")
    return all.first
  }

  func report(_ id: CommandID) -> Report? { try? outcome(id)?.get() }
  func code(_ id: CommandID) -> String? {
    guard case .failure(let error)? = outcome(id) else { return nil }
    switch error {
    case .refused(let code, _): return code
    case .invalid(let argument, _): return argument
    case .notConnected: return "not-connected"
    case .timeout: return "timeout"
    }
  }
  func refusal(_ id: CommandID) -> String {
    guard case .failure(let error)? = outcome(id) else { return "" }
    switch error {
    case .refused(_, let words), .invalid(_, let words), .notConnected(let words): return words
    case .timeout: return "timeout"
    }
  }
}
