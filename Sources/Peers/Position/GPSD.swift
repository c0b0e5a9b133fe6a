// A simulated gpsd with a receiver that moves in a loop. Each `GPSD` serves one client; the position depends only on the time since the
// start of the simulator, so all clients see the same drive.
// Source: gpsd_json(5); observed with gpsd 3.22.

import Protocols

/// One connection to a simulated gpsd.
public struct GPSD: Machine {
  public let schema = Schema()
  private let loop: GPSDLoop
  private let period: Nanoseconds
  private let origin: Instant
  private var faults: FaultSet<GPSDFaultKind>
  private var queue = SendQueue(baud: nil)
  private var input: [UInt8] = []
  private var connectedAt: Instant = 0
  /// When the receiver reports next, or nil before the client has subscribed.
  private var nextFix: Instant?
  private var fixCount = 0
  /// The end of each active fault that has a duration.
  private var active: [GPSDFaultKind: Instant] = [:]
  /// The time of the last fix, in seconds since the start.
  private var lastFix = 0.0

  private static let maxInput = 1024

  /// Creates a connection to a gpsd that started at `origin`. `rate` is the number of fixes per second.
  public init(_ loop: GPSDLoop = GPSDLoop(), rate: Double = 1, origin: Instant = 0, faults: [GPSDFault] = []) {
    (self.loop, self.origin, self.faults) = (loop, origin, FaultSet(faults))
    period = Nanoseconds(1e9 / rate)
  }

  public var nextWake: Instant? { [nextFix, queue.nextDue].compactMap(\.self).min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up): connect(at: now)
    case .linkChanged(.main, .down):
      nextFix = nil
      queue.reset(at: now)
    case .received(.main, let bytes): received(bytes, at: now)
    case .sent(let id, _): queue.sent(id)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated gpsd takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    if let due = nextFix, now >= due {
      nextFix = max(due, now - period) + period
      report(at: now, &effects)
    }
    queue.flush(at: now, &effects)
  }

  /// Whether a server other than gpsd is listening on the port.
  private var isOtherServer: Bool { faults.contains(.ssh) || faults.contains(.nmea) || faults.contains(.mute) }
  private var receivers: [String] {
    guard !faults.contains(.noReceiver) else { return [] }
    return (active[.unplug] == nil ? [GPSDReports.receiver] : []) + (faults.contains(.second) ? [GPSDReports.secondReceiver] : [])
  }

  private mutating func connect(at now: Instant) {
    queue.reset(at: now)
    (connectedAt, input, nextFix, active, fixCount) = (now, [], nil, [:], 0)
    if faults.contains(.ssh) { return send("SSH-2.0-OpenSSH_9.2p1", at: now) }
    if faults.contains(.nmea) { nextFix = now }
    if !isOtherServer { send(GPSDReports.version(isOld: faults.contains(.old)), at: now) }
  }

  private mutating func send(_ line: String, at now: Instant) { queue.add(Array((line + "\r\n").utf8), at: now) }

  // MARK: Requests

  private mutating func received(_ bytes: [UInt8], at now: Instant) {
    guard !isOtherServer, active[.hang] == nil else { return }
    input += bytes
    while let end = input.firstIndex(of: UInt8(ascii: ";")) {
      let request = String(decoding: input[..<end], as: UTF8.self)
      input.removeSubrange(...end)
      answer(request.filter { !$0.isWhitespace }, at: now)
    }
    input = Array(input.suffix(Self.maxInput))
  }

  private mutating func answer(_ request: String, at now: Instant) {
    if request.hasPrefix("?WATCH="), request.contains("\"enable\":true"), request.contains("\"json\":true") {
      send(GPSDReports.devices(receivers), at: now)
      send(GPSDReports.watch, at: now)
      if nextFix == nil { nextFix = now + period }
    } else if request == "?VERSION" {
      send(GPSDReports.version(isOld: faults.contains(.old)), at: now)
    } else {
      send(GPSDReports.error("Unrecognized request '\(request)'"), at: now)
    }
  }

  // MARK: Reports

  private mutating func report(at now: Instant, _ effects: inout Effects) {
    if faults.contains(.nmea) { return send("$GPRMC,120000.00,A,6325.8000,N,01023.4000,E,27.00,0.0,010626,,*0F", at: now) }
    fixCount += 1
    for kind in [GPSDFaultKind.noFix, .frozen, .silence, .unplug, .hang] { update(kind, at: now) }
    if isDue(.restart, at: now) {
      nextFix = nil
      queue.reset(at: now)
      return effects.append(.resetLink(.main, reason: "gpsd restarts"))
    }
    guard active[.hang] == nil else { return }
    if faults.contains(.second) { send(GPSDReports.noFix(GPSDReports.secondReceiver), at: now) }
    if isDue(.error, at: now) { send(GPSDReports.error("Can't open the receiver"), at: now) }
    if isDue(.garbage, at: now) { send("{\"class\":\"TPV\",\"lat\":}", at: now) }
    if isDue(.long, at: now) { send(String(repeating: "x", count: 100_000), at: now) }
    guard receivers.contains(GPSDReports.receiver), active[.silence] == nil else { return }
    if isDue(.early, at: now) { send(GPSDReports.early, at: now) }
    send(fix: fix(at: now), at: now)
    send(GPSDReports.sky(isOld: faults.contains(.old)), at: now)
  }

  private mutating func fix(at now: Instant) -> String {
    guard active[.noFix] == nil else { return GPSDReports.noFix(GPSDReports.receiver) }
    if active[.frozen] == nil { lastFix = Double(now - origin) / 1e9 }
    let line = GPSDReports.fix(
      loop.point(at: lastFix), speed: loop.speed, at: lastFix, isThreeD: !faults.contains(.twoD), isOld: faults.contains(.old),
      isSparse: isDue(.sparse, at: now))
    return isDue(.nan, at: now) ? line.dropLast() + #","ept":nan,"climb":-nan,"epd":NaN,"eps":inf}"# : line
  }

  private mutating func send(fix line: String, at now: Instant) {
    let bytes = Array(line.utf8)
    if isDue(.cut, at: now) { return queue.add(Array(bytes.prefix(bytes.count / 2)), at: now) }
    guard isDue(.split, at: now) else { return send(line, at: now) }
    queue.add(Array(bytes.prefix(bytes.count / 2)), at: now)
    queue.add(Array(bytes.dropFirst(bytes.count / 2)) + Array("\r\n".utf8), at: now + 15 * .millisecond)
  }

  // MARK: Faults

  /// Starts or ends a fault that has a duration. Reports to the client that the receiver was unplugged or plugged in again.
  private mutating func update(_ kind: GPSDFaultKind, at now: Instant) {
    if let end = active[kind] {
      guard now >= end else { return }
      active[kind] = nil
      if kind == .unplug { send(GPSDReports.device(GPSDReports.receiver, isActive: true), at: now) }
    } else if let fault = faults.due(kind, item: fixCount, after: now - connectedAt) {
      active[kind] = fault.duration.map { now + $0 } ?? .max
      if kind == .unplug { send(GPSDReports.device(GPSDReports.receiver, isActive: false), at: now) }
    }
  }

  private mutating func isDue(_ kind: GPSDFaultKind, at now: Instant) -> Bool {
    faults.due(kind, item: fixCount, after: now - connectedAt) != nil
  }
}
