// The `mirror` machine: tells a smart mirror who stands before it, how bright its light is, and now and then what other devices
// know of health and weather. The mirror acknowledges writes and says nothing else. It keeps one write outstanding at most, never
// tells a value before a name, and after a reconnect builds the session up again: greeting, name, light, waves.
// Facts: ISM-App's BLE.swift (order, 2 s, 60 s), ISM-Embedded's main.cpp (what a name and a value cause, what is lost).

/// Talks with the ESP32 of a smart mirror.
public struct MirrorMachine: Machine {
  /// What the machine is at. Each case carries just what is valid in it.
  enum State {
    /// No link: nothing is due.
    case down(String)
    case up(MirrorSession)
    /// The link is being closed.
    case parting(MirrorParting)
  }

  /// A command whose words the mirror has yet to acknowledge.
  struct Wait {
    /// When its caller is told that it took too long.
    let until: Instant
    /// What its caller is told when it is done.
    let report: Report
    /// It is kept: where the mirror cannot be told now, it will be.
    let isKept: Bool
    /// Done when the mirror has this name; nil: when no message of the command is left.
    let name: String?
  }

  public let schema = Schema(properties: MirrorSignal.properties, actions: [Self.sendNow])
  let settings: MirrorSettings
  var state = State.down("the link is not up yet")
  var keeping = MirrorKeeping()
  /// The values of other devices that are known now.
  var known: [MirrorMetric: Value] = [:]
  /// Why the mirror cannot be told a value now.
  var missing: [MirrorMetric: String] = [:]
  /// Since when a value that is observed is absent.
  var absentSince: [MirrorMetric: Instant] = [:]
  /// The time as it was told with the last wave.
  var clock = DayClock(WallTime(microseconds: 0), at: 0)
  /// How far the display has read, as the last connection left it.
  var reading = MirrorReading()
  var waits: [CommandID: Wait] = [:]
  /// When the next wave of values is due; nil while nothing is sent.
  var wave: Instant?
  var lastSendID: SendID = 0
  /// What is wrong with the mirror, until a connection has held for a while.
  var trouble: String?
  /// When the link came up, and how many connections in a row were lost soon after that.
  var cameUp: Instant = 0
  var earlyLosses = 0
  private var shown: (word: String, fault: String?) = ("starting", nil)

  /// A machine of these settings, or which option cannot be.
  public init(_ setup: Setup) throws(OptionError) { settings = try MirrorSettings(setup) }

  /// Whom the mirror is to greet: what was set by hand counts more than the configuration.
  var username: String? { keeping.now.username ?? settings.username }

  public var nextWake: Instant? {
    var due = waits.values.map(\.until)
    switch state {
    case .down: break
    case .up(let session):
      if let moment = session.nextWake(for: username) { due.append(moment) }
      if isDoubtful, session.isAcknowledged { due.append(cameUp &+ Self.settling) }
      if let wave { due.append(wave) }
    case .parting(let parting): due.append(parting.nextWake)
    }
    return due.min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall): start(restored, wall, at: now, &effects)
    case .time(let wall): told(wall, at: now)
    case .linkChanged(.main, .up): linkCameUp(at: now)
    case .linkChanged(.main, .down(let reason)): linkWentDown(reason, at: now, &effects)
    case .sent(let id, let failure): sent(id, failure, at: now, &effects)
    case .stored(let key, let failure): stored(key, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .observed(let reference, let content): observed(reference, content, at: now, &effects)
    case .cancelled(let id): forget(id)
    case .stopping: stop(at: now, &effects)
    case .wake, .linkChanged, .received, .response, .rows, .leaseBegan, .leaseEnded: break
    }
    expire(at: now, &effects)
    advance(at: now, &effects)
    settle(at: now)
    tellStanding(&effects)
  }

  // MARK: Starting, and standing

  private mutating func start(_ restored: [String: [UInt8]], _ wall: WallTime, at now: Instant, _ effects: inout Effects) {
    let damaged = keeping.restore(restored)
    clock = DayClock(wall, at: now)
    reading = MirrorReading(name: keeping.introduced.last, at: now)
    if !damaged.isEmpty { effects.append(.event(name: "damaged", text: keptWords(damaged))) }
    publishKept(&effects)
    for signal in MirrorSignal.sent { effects.withdraw(signal, "the mirror has acknowledged nothing of it since the device was started") }
    for metric in MirrorMetric.allCases {
      if let reference = settings.sources[metric] { effects.append(.observe(reference: reference)) }
    }
  }

  mutating func publishKept(_ effects: inout Effects) {
    if let led = keeping.now.led {
      effects.publish(.led, .int(led))
    } else {
      effects.withdraw(.led, "nobody has set it yet, and the mirror does not tell: vehiclectl set \(settings.device).led 50")
    }
    if let username {
      effects.publish(.username, .string(username))
    } else {
      effects.withdraw(.username, "not given: vehiclectl set \(settings.device).username NAME")
    }
    effects.publish(.interval, .int(interval))
    for turned in MirrorSwitch.allCases { effects.publish(turned.signal, .bool(keeping.now.on.contains(turned))) }
  }

  /// Seconds between two waves.
  var interval: Int { keeping.now.interval ?? settings.interval }

  var nameless: String { "the mirror has no name to show: vehiclectl set \(settings.device).username NAME" }

  /// The device's word, and what is wrong.
  private mutating func tellStanding(_ effects: inout Effects) {
    let word: String
    if username == nil {
      word = "needs-username"
    } else {
      switch state {
      case .down: word = "waiting"
      case .up where trouble != nil: word = "silent"
      case .up: word = wave == nil ? "connected" : "sending"
      case .parting: word = "parting"
      }
    }
    let fault = username == nil ? nameless : trouble
    if word != shown.word { effects.append(.status(word)) }
    if fault != shown.fault { effects.append(.fault(fault)) }
    shown = (word, fault)
  }
}
