// The `position` machine: subscribes to the reports of gpsd, and publishes the position of one receiver. gpsd sends its version first, so
// nothing is sent to a server that is not gpsd. If no position is reported, the subscription is repeated: only then does gpsd open a
// receiver that was added later, and the reply shows that gpsd still runs.
// Source: gpsd_json(5): VERSION, WATCH, DEVICES, DEVICE, TPV, SKY, ERROR.

/// Publishes the position from a GPS receiver.
public struct PositionMachine: Machine {
  private enum State {
    case down
    /// This machine is resetting the link; the fault stays published when the link goes down.
    case resetting
    /// Connected; the first line is awaited until this time.
    case greeting(until: Instant)
    /// Subscribed; the first report of a receiver is awaited until this time.
    case listening(until: Instant)
    /// The receiver reports; the next report is awaited until this time.
    case reporting(until: Instant)
    /// No receiver reports. The subscription is repeated at this time, if the last one was answered.
    case silent(until: Instant, isAnswered: Bool)
  }

  public let schema: Schema
  private let settings: PositionSettings
  private var state = State.down
  private var lines = GPSDLines()
  private var receivers: ReceiverChoice
  private var publisher: PositionPublisher
  private var badMessages = 0

  static let subscription = Array("?WATCH={\"enable\":true,\"json\":true};\n".utf8)
  private static let greetingTimeout: Nanoseconds = 10 * .second
  /// How long gpsd may take to recognise a receiver: it tries many baud rates.
  private static let firstReportTimeout: Nanoseconds = 20 * .second
  private static let subscriptionInterval: Nanoseconds = 15 * .second
  private static let usualLink = "usually tcp:localhost:2947"

  init(_ settings: PositionSettings = PositionSettings()) {
    self.settings = settings
    schema = Schema(properties: PositionProperty.table(maxAge: settings.maxAge))
    receivers = ReceiverChoice(settings)
    publisher = PositionPublisher()
  }

  public var nextWake: Instant? {
    switch state {
    case .down, .resetting: nil
    case .greeting(let until), .listening(let until), .silent(let until, _): until
    case .reporting(let until): min(until, publisher.expiry ?? until)
    }
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started:
      effects.append(.status("waiting"))
      effects.publish(PositionProperty.badMessages.rawValue, .int(0))
      publisher.withdrawAll("not connected to gpsd yet", &effects)
    case .linkChanged(.main, .up):
      (lines, receivers, publisher) = (GPSDLines(), ReceiverChoice(settings), PositionPublisher())
      state = .greeting(until: now &+ Self.greetingTimeout)
      effects.append(.status("connecting"))
    case .linkChanged(.main, .down(let reason)):
      if case .resetting = state {} else { report("waiting", nil, &effects) }
      state = .down
      publisher.withdraw(reason, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .readOnly, "the position is read-only"))))
    case .stopping:
      state = .down
      publisher.withdraw("the daemon is stopping", &effects)
      effects.append(.stopped)
    case .linkChanged, .received, .sent, .cancelled, .observed, .response, .rows, .time, .stored, .leaseBegan, .leaseEnded, .wake: break
    }
    if let due = nextWake, now >= due { timeOut(at: now, &effects) }
  }

  // MARK: Lines

  private mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    var complete: [[UInt8]?] = []
    lines.add(bytes) { complete.append($0) }
    for line in complete {
      switch state {
      case .down, .resetting: return
      case .silent(let until, isAnswered: false) where line != nil: state = .silent(until: until, isAnswered: true)
      default: break
      }
      guard let report = line.flatMap(GPSDReport.init) else {
        if case .greeting = state { return reject(line, &effects) }
        badMessages &+= 1
        effects.publish(PositionProperty.badMessages.rawValue, .int(badMessages))
        continue
      }
      if case .greeting = state { subscribe(at: now, &effects) }
      handle(report, at: now, &effects)
    }
  }

  private mutating func handle(_ report: GPSDReport, at now: Instant, _ effects: inout Effects) {
    let hadUsable = receivers.hasUsable
    switch report {
    case .version(let version): effects.publish(PositionProperty.gpsdVersion.rawValue, .string(version))
    case .receivers(let paths):
      if receivers.replace(paths) { publisher.withdrawAll("gpsd no longer lists the receiver", &effects) }
      receiversChanged(hadUsable, at: now, &effects)
    case .receiver(let path, isActive: true):
      guard receivers.add(path) else { return }
      effects.send(.main, Self.subscription)
      receiversChanged(hadUsable, at: now, &effects)
    case .receiver(let path, isActive: false):
      if receivers.remove(path) {
        publisher.withdrawAll("the receiver \(path) was disconnected", &effects)
        listen(at: now, &effects)
      }
      receiversChanged(hadUsable, at: now, &effects)
    case .fix(let fix): handle(fix, at: now, &effects)
    case .sky(let sky): if receivers.isCurrent(sky.receiver) { publisher.publish(sky, &effects) }
    case .error(let message): effects.append(.event(name: "gpsd-error", text: "gpsd reported an error: \(message)"))
    case .other: break
    }
  }

  private mutating func handle(_ fix: GPSDFix, at now: Instant, _ effects: inout Effects) {
    guard let expiry = receivers.record(fix, at: now), let path = receivers.current else { return }
    state = .reporting(until: now &+ settings.maxAge)
    publisher.publish(receiver: path, &effects)
    if fix.hasPosition, expiry > now {
      publisher.publish(fix, until: expiry, at: now, &effects)
      report("live", nil, &effects)
    } else if fix.mode == .none {
      publisher.publishNoFix(&effects)
      report("no-fix", nil, &effects)
    } else if publisher.expiry == nil {
      expire(fix.hasPosition, &effects)
    }
  }

  // MARK: States

  private mutating func subscribe(at now: Instant, _ effects: inout Effects) {
    effects.send(.main, Self.subscription)
    publisher.withdrawAll("no report of a receiver yet", &effects)
    listen(at: now, &effects)
  }

  private mutating func listen(at now: Instant, _ effects: inout Effects) {
    state = .listening(until: now &+ Self.firstReportTimeout)
    report("listening", nil, &effects)
  }

  /// Reports that there is no receiver, or waits for the reports of one that was added.
  private mutating func receiversChanged(_ hadUsable: Bool, at now: Instant, _ effects: inout Effects) {
    switch state {
    case .listening, .reporting:
      if !receivers.hasUsable { fallSilent(at: now, isAnswered: true, &effects) }
    case .silent:
      guard receivers.hasUsable, !hadUsable else { return publishSilence(&effects) }
      publisher.withdraw("no report of a receiver yet", &effects)
      listen(at: now, &effects)
    case .down, .resetting, .greeting: break
    }
  }

  private mutating func timeOut(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down, .resetting: break
    case .greeting:
      reset("no reply from gpsd: another program may be listening on this port; check link, \(Self.usualLink)", &effects)
    case .listening: fallSilent(at: now, isAnswered: false, &effects)
    case .reporting(let until):
      if now >= until { return fallSilent(at: now, isAnswered: false, &effects) }
      expire(true, &effects)
    case .silent(_, isAnswered: false): reset("gpsd does not respond; check it: systemctl status gpsd", &effects)
    case .silent(_, isAnswered: true):
      effects.send(.main, Self.subscription)
      state = .silent(until: now &+ Self.subscriptionInterval, isAnswered: false)
    }
  }

  /// Withdraws the position, because the receiver still sends reports, but no new position.
  private mutating func expire(_ hasPosition: Bool, _ effects: inout Effects) {
    let cause = hasPosition ? "the receiver repeats an old position" : "the receiver reports a fix without coordinates"
    publisher.withdraw("\(cause); if this persists, reconnect it", &effects)
    report("no-fix", nil, &effects)
  }

  private mutating func fallSilent(at now: Instant, isAnswered: Bool, _ effects: inout Effects) {
    if !isAnswered { effects.send(.main, Self.subscription) }
    state = .silent(until: now &+ Self.subscriptionInterval, isAnswered: isAnswered)
    publishSilence(&effects)
  }

  private mutating func publishSilence(_ effects: inout Effects) {
    publisher.withdraw(silence, &effects)
    report(receivers.hasUsable ? "silent" : "no-receiver", silence, &effects)
  }

  /// Why no receiver reports.
  private var silence: String {
    if receivers.hasUsable { return "no report of the GPS receiver; check it with gpsmon" }
    let paths = receivers.paths
    guard let receiver = settings.receiver, !paths.isEmpty else {
      return "gpsd has no GPS receiver; connect one, or add it to DEVICES in /etc/default/gpsd"
    }
    return "gpsd has no receiver \(receiver); connect it, or set gps to one that gpsd has: \(paths.joined(separator: ", "))"
  }

  /// Rejects a server whose first line is not gpsd's JSON. The line is not shown, because it can contain a position.
  private mutating func reject(_ line: [UInt8]?, _ effects: inout Effects) {
    let isNMEA = line?.starts(with: Array("$".utf8)) == true || line?.starts(with: Array("!".utf8)) == true
    reset(
      isNMEA
        ? "the server sends NMEA 0183 instead of gpsd's JSON; start gpsd with tcp://HOST:PORT of this server, and set link to gpsd"
        : "the server is not gpsd; check link, \(Self.usualLink)", &effects)
  }

  private mutating func reset(_ reason: String, _ effects: inout Effects) {
    state = .resetting
    publisher.withdraw(reason, &effects)
    report("failing", reason, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  private func report(_ status: String, _ fault: String?, _ effects: inout Effects) {
    effects.append(.status(status))
    effects.append(.fault(fault))
  }
}
