// The toy's Wi-Fi setup. While its access point is open, the toy connects to the daemon. The daemon sends `ok`, the toy responds with
// `ok`, and one packet carries the credentials. The toy ignores input for a moment after its `ok`, and shows the result only with its LED.
// The port is always closed at the end. According to the original documentation, the daemon connects to the toy instead.
// Source: neils95/Trivio, microprocessor.ino (handshake, timeouts), the Android app's Server.java, SoftwareREADME.md (documented).

/// One attempt to set up the toy's Wi-Fi.
struct ToySetup: Sendable {
  static let link: LinkName = "toy"

  private enum State {
    /// Waiting for the toy to connect.
    case waiting
    /// The daemon has sent its `ok`; the toy's `ok` is awaited until this time.
    case greeting(until: Instant, received: [UInt8])
    /// The toy ignores input until this time, at which the credentials are sent.
    case settling(until: Instant)
    /// The credentials have been sent. The attempt ends when the toy closes the connection, or at this time at the latest.
    case draining(until: Instant)
  }

  /// The result of an attempt.
  enum Outcome: Equatable {
    case sent
    case failed(CommandError)
  }

  let command: CommandID
  private let credentials: ToyCredentials
  private let settings: ToySettings
  /// The address of the toy to connect to; nil if the toy connects to the daemon.
  private let toyAddress: String?
  private let startedAt: Instant
  private var state = State.waiting { didSet { nextProgress = .min } }
  private var nextProgress: Instant
  private var disconnects = 0
  /// The last rejected peer, and why.
  private var rejectedPeer: String?
  /// Whether unexpected bytes have already been logged on this connection; they are logged only once.
  private var hasLoggedUnexpectedBytes = false
  /// Why the connection to the toy failed.
  private var connectionError: String?

  static let stateNames = ["idle", "listening", "greeting", "settling", "sending", "sent"]
  private static let timeout: Nanoseconds = 300 * .second
  private static let greetingTimeout: Nanoseconds = 10 * .second
  private static let settlingTime: Nanoseconds = 1200 * .millisecond
  private static let drainingTime: Nanoseconds = 15 * .second
  private static let progressPeriod: Nanoseconds = .second
  /// The delay before the user is prompted to press the button, so that a failure to open the port is reported first.
  private static let promptDelay: Nanoseconds = 300 * .millisecond
  private static let ok = Array("ok".utf8)

  /// Starts to wait for the toy, or to connect to it.
  init(
    _ command: CommandID, _ credentials: ToyCredentials, toyAddress: String?, _ settings: ToySettings, at now: Instant,
    _ effects: inout Effects
  ) {
    (self.command, self.credentials, self.toyAddress, self.settings) = (command, credentials, toyAddress, settings)
    (startedAt, nextProgress) = (now, now &+ Self.promptDelay)
    if let toyAddress {
      effects.append(.openLink(Self.link, url: "tcp:\(toyAddress)"))
    } else {
      effects.append(.listen(Self.link, at: settings.listenAddress, from: settings.network))
    }
  }

  /// One of `stateNames`.
  var stateName: String {
    switch state {
    case .waiting: "listening"
    case .greeting: "greeting"
    case .settling: "settling"
    case .draining: "sending"
    }
  }

  var nextWake: Instant {
    switch state {
    case .waiting: min(nextProgress, startedAt &+ Self.timeout)
    case .greeting(let until, _), .settling(let until), .draining(let until): min(nextProgress, until)
    }
  }

  // MARK: Events

  mutating func linkUp(at now: Instant, _ effects: inout Effects) {
    guard case .waiting = state else { return }
    (connectionError, hasLoggedUnexpectedBytes) = (nil, false)
    state = .greeting(until: now &+ Self.greetingTimeout, received: [])
    effects.send(Self.link, Self.ok)
  }

  /// Records a peer that was rejected.
  mutating func peerRejected(_ description: String) { rejectedPeer = description }

  mutating func linkDown(_ reason: String) -> Outcome? {
    switch state {
    case .waiting:
      connectionError = reason
      return toyAddress == nil ? .failed(.refused(code: .cannotListen, reason)) : nil
    case .greeting, .settling:
      disconnects += 1
      state = .waiting
      return nil
    case .draining: return .sent
    }
  }

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    switch state {
    case .greeting(let until, let received):
      let all = received + bytes.prefix(64)
      if all == Self.ok {
        state = .settling(until: now &+ Self.settlingTime)
      } else {
        // `ok` can arrive in two pieces. If the toy sends anything else, a later connection may succeed.
        state = .greeting(until: until, received: Array(all.prefix(64)))
        if !Self.ok.starts(with: all) { logUnexpectedBytes("unexpected bytes from the toy instead of ok:", all, &effects) }
      }
    case .draining: logUnexpectedBytes("unexpected bytes from the toy after the credentials:", bytes, &effects)
    case .waiting, .settling: logUnexpectedBytes("unexpected bytes from the toy:", bytes, &effects)
    }
  }

  private mutating func logUnexpectedBytes(_ message: String, _ bytes: [UInt8], _ effects: inout Effects) {
    if !hasLoggedUnexpectedBytes { effects.append(.note("\(message) \(printable(bytes.prefix(64)))")) }
    hasLoggedUnexpectedBytes = true
  }

  /// Whether the credentials were sent.
  var hasSentCredentials: Bool { if case .draining = state { true } else { false } }

  /// Handles expired timers.
  mutating func advance(at now: Instant, _ effects: inout Effects) -> Outcome? {
    switch state {
    case .greeting(let until, _) where now >= until:
      effects.append(.resetLink(Self.link, reason: "no ok from the toy within \(Self.greetingTimeout / .second) s"))
      // The new state of the link is reported in a later input.
      state = .greeting(until: .max, received: [])
    case .settling(let until) where now >= until:
      effects.send(Self.link, credentials.bytes, secret: true)
      state = .draining(until: now &+ Self.drainingTime)
    case .draining(let until) where now >= until: return .sent
    case .waiting where now >= startedAt &+ Self.timeout:
      let seconds = Self.timeout / .second
      let message = "no toy connected within \(seconds) s: check that its LED is white and that this machine is in its network"
      return .failed(.refused(code: .noToy, connectionError.map { "\(message) (\($0))" } ?? message))
    default: break
    }
    if now >= nextProgress { reportProgress(at: now, &effects) }
    return nil
  }

  private mutating func reportProgress(at now: Instant, _ effects: inout Effects) {
    nextProgress = now &+ Self.progressPeriod
    let elapsed = min(max(0, now &- startedAt), Self.timeout)
    let progress = min(Double(elapsed) / Double(Self.timeout), 0.99)
    // Count down in steps of ten seconds, because clients print a line for each change.
    let step: Nanoseconds = 10 * .second
    let left = (Self.timeout &- elapsed &+ step &- 1) / step * 10
    effects.append(.progress(command, Report(text: message(left), progress: progress)))
  }

  private func message(_ left: Int64) -> String {
    switch state {
    case .waiting where toyAddress != nil:
      "connecting to the toy at \(toyAddress ?? "")" + (connectionError.map { ": \($0)" } ?? "") + ", \(left) s left"
    case .waiting:
      "\(left) s left to press the toy's button: LED white"
        + (disconnects == 0 ? "" : "; disconnected \(disconnects) \(disconnects == 1 ? "time" : "times")")
        + (rejectedPeer.map { "; rejected \($0): check toy-network" } ?? "")
    case .greeting: "a peer has connected: waiting up to 10 s for its ok"
    case .settling: "the toy is ready: sending the credentials in 1 s"
    case .draining: "\(ToyWiFi.sendingReport) for network \(visible(credentials.ssid, limit: 32))"
    }
  }

  /// The final report.
  var summary: String {
    let warning = credentials.warning.map { "; \($0)" } ?? ""
    return
      "sent; check the toy's LED: pink: connecting, green: connected, purple: failed\(warning). Then switch the toy off and on: it plays "
      + "for user \(credentials.user) only after that"
  }
}
