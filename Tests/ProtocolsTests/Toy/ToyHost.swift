// The phone, the web server, the card and the Wi-Fi network around a simulated toy, in virtual time. It checks the toy's contract:
// one connection at a time, one send outstanding, no send without a connection, and time that advances.

import Peers
import Protocols
import Testing

struct ToyHost {
  static let phone: LinkName = "phone"
  static let server: LinkName = "server"

  var toy: TriviaToy
  var now: Instant = 0
  /// Whether a phone or a web server is there when the toy connects.
  var phoneIsThere = true
  var serverIsThere = true
  /// The server's response to a request, or nil for none.
  var answer: (String) -> String? = { _ in "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n\"Honey never spoils.\"" }
  /// The toy's packets to the phone.
  private(set) var sends: [(at: Instant, text: String)] = []
  private(set) var requests: [(at: Instant, bytes: [UInt8])] = []
  private(set) var dials: [Instant] = []
  private(set) var events: [(at: Instant, text: String)] = []
  private(set) var closings: [(at: Instant, link: LinkName, isReset: Bool)] = []
  private(set) var card: [String: [UInt8]]
  private(set) var isUp: Set<LinkName> = []
  private(set) var isListening = false
  private var isPhoneClosed = false

  init(card: [String: [UInt8]] = [:], faults: [String] = [], change: (inout SimulatedToySettings) -> Void = { _ in }) throws {
    var settings = SimulatedToySettings(phone: "tcp:192.168.4.2:8080", server: "tcp:10.0.0.1:80")
    settings.faults = try faults.map { try ToyFault($0) }
    change(&settings)
    toy = TriviaToy(settings)
    self.card = card
    give(.started(restored: card, wall: WallTime(microseconds: 0)))
  }

  /// A toy that is already set up for user 18, is online and has just entered its main loop.
  static func online(user: String = "18", throwEvery: Nanoseconds? = 20 * .second) throws -> ToyHost {
    var host = try ToyHost {
      $0.user = user
      $0.isJoined = true
      $0.presses = []
      $0.throwEvery = throwEvery
    }
    host.pass(2 * .second)
    return host
  }

  /// A toy that has connected to a phone, which has sent nothing yet.
  static func dialled(_ faults: String..., change: (inout SimulatedToySettings) -> Void = { _ in }) throws -> ToyHost {
    var host = try ToyHost(faults: faults, change: change)
    host.pass(2 * .second)
    #expect(host.isUp == [phone] && host.led == .white)
    return host
  }

  var led: ToyLED { toy.led }
  var sent: [String] { sends.map(\.text) }
  var asked: [String] { requests.map { String(decoding: $0.bytes, as: UTF8.self) } }
  func file(_ name: String) -> String? { card[name].map { String(decoding: $0, as: UTF8.self) } }
  func logged(_ text: String) -> Bool { events.contains { $0.text.contains(text) } }

  mutating func send(_ text: String) {
    #expect(isUp.contains(Self.phone), "no connection for \(text)")
    give(.received(Self.phone, Array(text.utf8)))
  }

  /// The phone closes the connection, which the toy does not detect.
  mutating func disconnect() {
    isPhoneClosed = true
    isUp.remove(Self.phone)
    give(.linkChanged(Self.phone, .down("closed")))
  }

  /// The phone connects to a toy that listens.
  mutating func connect() {
    #expect(isListening && isUp.insert(Self.phone).inserted)
    give(.linkChanged(Self.phone, .up(maximumSend: nil)))
  }

  /// The phone's side of a correct setup, including the settling delay.
  mutating func provide(_ credentials: String) {
    send("ok")
    pass(1001 * .millisecond)
    send(credentials)
  }

  mutating func pass(_ time: Nanoseconds) {
    let end = now + time
    var turns = 0
    while let wake = toy.nextWake, wake <= end {
      #expect(wake >= now)
      turns += 1
      guard turns < 100_000 else { Issue.record("time stands still at \(now)"); break }
      now = max(now, wake)
      give(.wake)
    }
    now = end
  }

  mutating func give(_ input: Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      var effects = Effects()
      toy.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list { inputs += take(effect) }
    }
  }

  private mutating func take(_ effect: Effect) -> [Input] {
    switch effect {
    case .openLink(let link, let url):
      #expect(isUp.isEmpty, "one connection at a time")
      #expect(url == (link == Self.phone ? "tcp:192.168.4.2:8080" : "tcp:10.0.0.1:80"))
      if link == Self.phone { dials.append(now) }
      guard link == Self.phone ? phoneIsThere : serverIsThere else { return [.linkChanged(link, .down("refused"))] }
      isUp.insert(link)
      return [.linkChanged(link, .up(maximumSend: nil))]
    case .listen: isListening = true
    case .closeLink(let link), .resetLink(let link, _):
      if link == Self.phone { (isListening, isPhoneClosed) = (false, false) }
      let isReset = if case .resetLink = effect { true } else { false }
      if isUp.remove(link) != nil { closings.append((now, link, isReset)) }
    case .send(let link, let bytes, let id?, _):
      guard isUp.contains(link) else {
        #expect(isPhoneClosed && link == Self.phone, "it sends without a connection")
        return [.sent(id, failure: "no connection")]
      }
      guard link == Self.server else {
        sends.append((now, String(decoding: bytes, as: UTF8.self)))
        return [.sent(id, failure: nil)]
      }
      requests.append((now, bytes))
      let answer = answer(String(decoding: bytes, as: UTF8.self))
      return [.sent(id, failure: nil)] + (answer.map { [.received(link, Array($0.utf8))] } ?? [])
    case .store(let key, let bytes): card[key] = bytes.isEmpty ? nil : bytes
    case .event(_, let text): events.append((now, text))
    default: Issue.record("unexpected effect: \(effect)")
    }
    return []
  }
}
