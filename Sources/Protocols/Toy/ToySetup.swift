// How the toy is told its network: it connects to us while its own access point is open, both say `ok`, and one packet holds all. We
// speak first. The toy is deaf for a moment after its `ok`, and never says whether it could join: its LED does. Nothing is left
// listening at the end, however it comes.
// Facts: protocols of the Trivia toy, §A: handshake, deadlines, and that the original documentation has us dial the toy.

/// One attempt to tell the toy its network.
struct ToySetup: Sendable {
  static let link: LinkName = "toy"

  private enum State {
    /// For the toy to come.
    case waiting
    /// Our `ok` is said; the toy's is due.
    case greeting(until: Instant, heard: [UInt8])
    /// The toy's busy moment.
    case settling(until: Instant)
    /// It was told all; it says nothing, hangs up, or vanishes.
    case draining(until: Instant)
  }

  /// What became of an attempt.
  enum Outcome: Equatable {
    case sent
    case failed(CommandError)
  }

  let command: CommandID
  private let credentials: ToyCredentials
  private let settings: ToySettings
  /// Where the toy is dialled; nil: it comes to us.
  private let dial: String?
  private let began: Instant
  private var state = State.waiting { didSet { nextTick = .min } }
  private var nextTick: Instant
  private var hangUps = 0
  /// Who was refused last, and why.
  private var refusal: String?
  /// What a peer said that it should not have is noted once for each connection.
  private var hasNoted = false
  /// Why the toy cannot be dialled.
  private var trouble: String?

  static let words = ["idle", "listening", "greeting", "settling", "sending", "sent"]
  private static let timeout: Nanoseconds = 300 * .second
  private static let greetingTimeout: Nanoseconds = 10 * .second
  private static let settlingTime: Nanoseconds = 1200 * .millisecond
  private static let drainingTime: Nanoseconds = 15 * .second
  private static let tick: Nanoseconds = .second
  /// Whether there is a port to listen on shows at once: nobody is told to press a button before.
  private static let lead: Nanoseconds = 300 * .millisecond
  private static let ok = Array("ok".utf8)

  /// Begins to wait for the toy, or to dial it.
  init(
    _ command: CommandID, _ credentials: ToyCredentials, dial: String?, _ settings: ToySettings, at now: Instant, _ effects: inout Effects
  ) {
    (self.command, self.credentials, self.dial, self.settings) = (command, credentials, dial, settings)
    (began, nextTick) = (now, now &+ Self.lead)
    if let dial {
      effects.append(.openLink(Self.link, url: "tcp:\(dial)"))
    } else {
      effects.append(.listen(Self.link, at: settings.place, from: settings.network))
    }
  }

  /// A word of `words`.
  var word: String {
    switch state {
    case .waiting: "listening"
    case .greeting: "greeting"
    case .settling: "settling"
    case .draining: "sending"
    }
  }

  var nextWake: Instant {
    switch state {
    case .waiting: min(nextTick, began &+ Self.timeout)
    case .greeting(let until, _), .settling(let until), .draining(let until): min(nextTick, until)
    }
  }

  // MARK: What happens

  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    guard case .waiting = state else { return }
    (trouble, hasNoted) = (nil, false)
    state = .greeting(until: now &+ Self.greetingTimeout, heard: [])
    effects.send(Self.link, Self.ok)
  }

  /// A peer was refused before it could say anything.
  mutating func refused(_ whom: String) { refusal = whom }

  mutating func linkWentDown(_ reason: String) -> Outcome? {
    switch state {
    case .waiting:
      trouble = reason
      return dial == nil ? .failed(.refused(code: "cannot-listen", reason)) : nil
    case .greeting, .settling:
      hangUps += 1
      state = .waiting
      return nil
    case .draining: return .sent
    }
  }

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    switch state {
    case .greeting(let until, let heard):
      let all = heard + bytes.prefix(64)
      if all == Self.ok {
        state = .settling(until: now &+ Self.settlingTime)
      } else {
        // `ok` may come in two pieces; whatever else it is, another toy may say it better.
        state = .greeting(until: until, heard: Array(all.prefix(64)))
        if !Self.ok.starts(with: all) { note("instead of ok the toy says", all, &effects) }
      }
    case .draining: note("after it was told its network the toy says", bytes, &effects)
    case .waiting, .settling: note("out of turn the toy says", bytes, &effects)
    }
  }

  private mutating func note(_ words: String, _ bytes: [UInt8], _ effects: inout Effects) {
    if !hasNoted { effects.append(.note("\(words) \(printable(bytes.prefix(64)))")) }
    hasNoted = true
  }

  /// All was sent.
  var hasTold: Bool { if case .draining = state { true } else { false } }

  /// Does what is due.
  mutating func advance(at now: Instant, _ effects: inout Effects) -> Outcome? {
    switch state {
    case .greeting(let until, _) where now >= until:
      effects.append(.resetLink(Self.link, reason: "it did not say ok within \(Self.greetingTimeout / .second) s"))
      // The end of the link is told after this turn.
      state = .greeting(until: .max, heard: [])
    case .settling(let until) where now >= until:
      effects.send(Self.link, credentials.bytes, secret: true)
      state = .draining(until: now &+ Self.drainingTime)
    case .draining(let until) where now >= until: return .sent
    case .waiting where now >= began &+ Self.timeout:
      let seconds = Self.timeout / .second
      let words = "no toy came within \(seconds) s: was its LED white, and this machine in its network?"
      return .failed(.refused(code: "no-toy", trouble.map { "\(words) (\($0))" } ?? words))
    default: break
    }
    if now >= nextTick { tell(at: now, &effects) }
    return nil
  }

  private mutating func tell(at now: Instant, _ effects: inout Effects) {
    nextTick = now &+ Self.tick
    let elapsed = min(max(0, now &- began), Self.timeout)
    let progress = min(Double(elapsed) / Double(Self.timeout), 0.99)
    // In tens of seconds: who prints a line for each change prints few.
    let left = (Self.timeout &- elapsed &+ 10 * .second - 1) / (10 * .second) * 10
    effects.append(.progress(command, Report(text: words(left), progress: progress)))
  }

  private func words(_ left: Int64) -> String {
    switch state {
    case .waiting where dial != nil: "dialling the toy at \(dial ?? "")" + (trouble.map { ": \($0)" } ?? "") + ", \(left) s left"
    case .waiting:
      "\(left) s left to press the toy's button: LED white"
        + (hangUps == 0 ? "" : "; hung up \(hangUps) \(hangUps == 1 ? "time" : "times")")
        + (refusal.map { "; refused \($0): check toy-network" } ?? "")
    case .greeting: "somebody has connected, and should say ok within 10 s"
    case .settling: "the toy said ok and listens 54 s: told in a second"
    case .draining: "\(ToyWiFi.told) the network \(visible(credentials.ssid, limit: 32))"
    }
  }

  /// What a person is told at the end.
  var farewell: String {
    let warning = credentials.warning.map { "; \($0)" } ?? ""
    return
      "sent; look at the toy's LED: pink is trying, green has joined, purple has not\(warning). Then switch the toy off and on: only from "
      + "then on it plays for user \(credentials.user)"
  }
}
