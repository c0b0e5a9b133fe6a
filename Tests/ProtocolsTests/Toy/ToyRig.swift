// The toy machine with the simulated web server or responses of a test, and a simulated toy that connects to the port on which the
// machine listens during a Wi-Fi setup.

import MachineTesting
import Peers
import Testing

@testable import Protocols

typealias ToyRig = Host<ToyMachine, ToyWorld>

struct ToyWorld: Surroundings {
  let trivia: TriviaRig
  /// The response of the server, or nil for that of the simulated one.
  var answer: ((HTTPRequest) -> HTTPResponse?)?
  /// Whether the server is unreachable.
  var isOffline = false
  /// Why the machine cannot listen; nil: it can.
  var listenFailure: String?
  var toy: TriviaToy?
  private(set) var requests: [HTTPRequest] = []
  /// The body of the last request.
  var body: String { requests.last.map { String(decoding: $0.body, as: UTF8.self) } ?? "" }
  fileprivate(set) var isListening = false
  private(set) var openedURL: String?
  fileprivate(set) var isConnected = false
  private(set) var sends: [(at: Instant, text: String, secret: Bool)] = []
  private static let toyLink: LinkName = "phone"

  init(_ trivia: TriviaRig) { self.trivia = trivia }

  var nextWake: Instant? { toy?.nextWake }
  mutating func wake(at now: Instant) -> [Input] { giveToy(.wake, at: now) }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .request(let id, let request):
      requests.append(request)
      if isOffline { return [.response(id, .failed("\(request.url.split(separator: "/")[1]) cannot be reached"))] }
      guard let answer else { return [.response(id, simulated(request))] }
      // The response is lost, but the server has executed the request.
      guard let response = answer(request) else { _ = simulated(request); break }
      return [.response(id, response)]
    case .listen(ToySetup.link, let place, let network):
      #expect(place == "0.0.0.0:8080" && network?.description == "192.168.4.0/24" && !isListening)
      if let listenFailure { return [.linkChanged(ToySetup.link, .down(listenFailure))] }
      isListening = true
    case .openLink(ToySetup.link, let url): openedURL = url
    case .closeLink(ToySetup.link):
      (isListening, openedURL) = (false, nil)
      return isConnected ? disconnectToy(at: now) : []
    case .resetLink(ToySetup.link, let reason): return lose(reason, at: now)
    case .send(ToySetup.link, let bytes, _, let secret):
      #expect(isConnected)
      sends.append((now, String(decoding: bytes, as: UTF8.self), secret))
      return giveToy(.received(Self.toyLink, bytes), at: now)
    default: return nil
    }
    return []
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

  fileprivate mutating func lose(_ reason: String, at now: Instant) -> [Input] {
    isConnected ? disconnectToy(at: now) + [.linkChanged(ToySetup.link, .down(reason))] : []
  }

  private mutating func disconnectToy(at now: Instant) -> [Input] {
    isConnected = false
    return giveToy(.linkChanged(Self.toyLink, .down("closed")), at: now)
  }

  fileprivate mutating func giveToy(_ input: Input, at now: Instant) -> [Input] {
    var (effects, inputs): (Effects, [Input]) = (Effects(), [])
    toy?.handle(input, at: now, &effects)
    for effect in effects.list {
      switch effect {
      case .openLink(Self.toyLink, _):
        guard isListening, !isConnected else {
          inputs += giveToy(.linkChanged(Self.toyLink, .down("refused")), at: now)
          continue
        }
        isConnected = true
        inputs += giveToy(.linkChanged(Self.toyLink, .up(maximumSend: nil)), at: now)
        inputs.append(.linkChanged(ToySetup.link, .up(maximumSend: nil)))
      case .send(Self.toyLink, let bytes, let id?, _):
        if isConnected { inputs.append(.received(ToySetup.link, bytes)) }
        inputs += giveToy(.sent(id, failure: nil), at: now)
      case .closeLink(Self.toyLink), .resetLink(Self.toyLink, _):
        if isConnected { inputs.append(.linkChanged(ToySetup.link, .down("the toy closed the connection"))) }
        isConnected = false
      default: break
      }
    }
    return inputs
  }
}

extension ToyRig {
  /// Creates a rig whose clock starts at 2026-01-05T12:00:00Z.
  init(_ options: [String: Value] = [:], requiresTokens: Bool = false) throws {
    let world = ToyWorld(TriviaRig(requiresTokens: requiresTokens))
    self.init(try Self.machine(options), world, now: 1000 * .second, wall: 1_767_614_400_000_000)
    isTranscribed = true
  }

  static func machine(_ options: [String: Value]) throws -> ToyMachine {
    var all = options
    for option in Kind.toy.options where all[option.name] == nil { all[option.name] = option.defaultValue }
    return try #require(try Kind.toy.make(Setup(options: all)) as? ToyMachine)
  }

  static var ada: [String: Value] { ["email": .string("ada@example.org"), "password": .string("secret1")] }

  /// Creates a rig with a registered user, whose toy has played `facts` facts.
  static func loggedIn(facts: Int = 0, _ options: [String: Value] = [:], requiresTokens: Bool = false) throws -> ToyRig {
    var rig = try ToyRig(options, requiresTokens: requiresTokens)
    rig.start()
    let id = rig.run("register", ["name": .string("Ada")].merging(Self.ada) { $1 })
    #expect(rig.report(id)?.text == "registered and logged in as user 18")
    for _ in 0..<facts { rig.reportPlayed() }
    return rig
  }

  /// Reports another played fact to the server, as the toy does.
  func reportPlayed() { _ = surroundings.trivia.exchange(Array("GET /User/History/18/1 HTTP/1.1\r\nHost: x\r\n\r\n".utf8)) }

  /// Replaces the machine as after a kill of the daemon, with the stored state.
  mutating func restart(_ options: [String: Value] = [:], after time: Nanoseconds = .second) throws {
    replace(try Self.machine(options))
    (surroundings.isListening, surroundings.isConnected) = (false, false)
    now += time
    start()
  }

  @discardableResult mutating func vote(_ fact: Int, _ vote: String) -> CommandID {
    run("vote", ["id": .int(fact), "vote": .string(vote)])
  }

  mutating func cancel(_ id: CommandID) { give(.cancelled(id)) }

  /// Connects another peer than the simulated toy; the test sends its bytes.
  mutating func connect() {
    surroundings.isConnected = true
    give(.linkChanged(ToySetup.link, .up(maximumSend: nil)))
  }

  mutating func send(_ text: String) { give(.received(ToySetup.link, Array(text.utf8))) }
  mutating func disconnect(_ reason: String) { surroundings.lose(reason, at: now).forEach { give($0) } }
  mutating func giveToy(_ input: Input) { surroundings.giveToy(input, at: now).forEach { give($0) } }
}
