// A simulated toy in virtual time, with its phone and web server. Checks that the toy has one connection at a time, and sends nothing
// without a connection.

import MachineTesting
import Peers
import Protocols
import Testing

typealias ToyHost = Host<TriviaToy, ToyNetwork>

struct ToyNetwork: Surroundings {
  /// Whether the phone and the web server accept connections.
  var phoneIsThere = true
  var serverIsThere = true
  /// The server's response to a request, or nil for none.
  var answer: (String) -> String? = { _ in "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n\"Honey never spoils.\"" }
  /// The toy's packets to the phone.
  private(set) var sends: [(at: Instant, text: String)] = []
  private(set) var requests: [(at: Instant, bytes: [UInt8])] = []
  private(set) var dials: [Instant] = []
  private(set) var closings: [(at: Instant, link: LinkName, isReset: Bool)] = []
  fileprivate(set) var isUp: Set<LinkName> = []
  private(set) var isListening = false
  fileprivate var isPhoneClosed = false

  var sent: [String] { sends.map(\.text) }
  var requestTexts: [String] { requests.map { String(decoding: $0.bytes, as: UTF8.self) } }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .openLink(let link, let url):
      #expect(isUp.isEmpty, "one connection at a time")
      #expect(url == (link == ToyHost.phone ? "tcp:192.168.4.2:8080" : "tcp:10.0.0.1:80"))
      if link == ToyHost.phone { dials.append(now) }
      guard link == ToyHost.phone ? phoneIsThere : serverIsThere else { return [.linkChanged(link, .down("refused"))] }
      isUp.insert(link)
      return [.linkChanged(link, .up(maximumSend: nil))]
    case .listen: isListening = true
    case .closeLink(let link), .resetLink(let link, _):
      if link == ToyHost.phone { (isListening, isPhoneClosed) = (false, false) }
      let isReset = if case .resetLink = effect { true } else { false }
      if isUp.remove(link) != nil { closings.append((now, link, isReset)) }
    case .send(let link, let bytes, let id?, _):
      guard isUp.contains(link) else {
        #expect(isPhoneClosed && link == ToyHost.phone, "it sends without a connection")
        return [.sent(id, failure: "no connection")]
      }
      guard link == ToyHost.server else {
        sends.append((now, String(decoding: bytes, as: UTF8.self)))
        return [.sent(id, failure: nil)]
      }
      requests.append((now, bytes))
      let answer = answer(String(decoding: bytes, as: UTF8.self))
      return [.sent(id, failure: nil)] + (answer.map { [.received(link, Array($0.utf8))] } ?? [])
    default: return nil
    }
    return []
  }
}

extension ToyHost {
  static let phone: LinkName = "phone"
  static let server: LinkName = "server"

  init(card: [String: [UInt8]] = [:], faults: [String] = [], change: (inout SimulatedToySettings) -> Void = { _ in }) throws {
    var settings = SimulatedToySettings(phone: "tcp:192.168.4.2:8080", server: "tcp:10.0.0.1:80")
    settings.faults = try faults.map { try ToyFault($0) }
    change(&settings)
    self.init(TriviaToy(settings), ToyNetwork())
    start(restored: card)
  }

  /// Creates a toy that is already set up for user 18, is online and has just entered its main loop.
  static func online(user: String = "18", throwEvery: Nanoseconds? = 20 * .second) throws -> ToyHost {
    var host = try ToyHost {
      $0.user = user
      $0.isJoined = true
      $0.presses = []
      $0.throwEvery = throwEvery
    }
    host.run(for: 2 * .second)
    return host
  }

  /// Creates a toy that has connected to a phone, which has sent nothing yet.
  static func connected(_ faults: String..., change: (inout SimulatedToySettings) -> Void = { _ in }) throws -> ToyHost {
    var host = try ToyHost(faults: faults, change: change)
    host.run(for: 2 * .second)
    #expect(host.isUp == [phone] && host.led == .white)
    return host
  }

  var led: ToyLED { machine.led }
  func file(_ name: String) -> String? { disk[name].map { String(decoding: $0, as: UTF8.self) } }
  func logged(_ text: String) -> Bool { events.contains { $0.contains(text) } }

  mutating func send(_ text: String) {
    #expect(surroundings.isUp.contains(Self.phone), "no connection for \(text)")
    give(.received(Self.phone, Array(text.utf8)))
  }

  /// The phone closes the connection, which the toy does not detect.
  mutating func disconnect() {
    surroundings.isPhoneClosed = true
    surroundings.isUp.remove(Self.phone)
    give(.linkChanged(Self.phone, .down("closed")))
  }

  /// The phone connects to a toy that listens.
  mutating func connect() {
    #expect(surroundings.isListening && surroundings.isUp.insert(Self.phone).inserted)
    give(.linkChanged(Self.phone, .up(maximumSend: nil)))
  }

  /// The phone's side of a correct setup, including the settling delay.
  mutating func provide(_ credentials: String) {
    send("ok")
    run(for: 1001 * .millisecond)
    send(credentials)
  }
}
