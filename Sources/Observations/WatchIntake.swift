// Converts the replies of Watch to observations: each value once, with its time on the boot clock. It stores the latest observation of
// each property, because a snapshot repeats values, and because a value that is not confirmed within its lifetime has to end. The daemon
// reports this end (`stale`), but while the reader, the daemon or the computer is stopped, reports are merged or late. No I/O.

import Protocols
import Varlink

public struct WatchIntake {
  /// The change of the wall clock, in µs, up to which it counts as not set.
  private static let tolerance: Int64 = 1_000_000
  /// For how long before the start of this program the wall clock is assumed not to have been set, in µs.
  private static let timeBeforeStart: Int64 = 10_000_000
  /// The interval in which the daemon sends an unchanged value again, in µs.
  private static let repeatInterval: Int64 = 1_000_000
  /// The reason of a value that was not confirmed within its lifetime, as the daemon gives it.
  private static let stale = Reading.Content.absent("stale")

  private struct Latest {
    var time: Int64
    var content: Reading.Content
    var unit: String?
  }

  /// A device that the daemon has reported.
  private struct KnownDevice {
    var kind: String
    var properties: [String: Latest] = [:]
  }

  /// How much later than its latest observation a value may have been confirmed without a report, in µs.
  private let confirmationDelay: Int64
  private var devices: [String: KnownDevice] = [:]
  /// The devices that the latest reply has removed. They are forgotten with the next one, because their last observations need their kind.
  private var removedDevices: [String] = []
  /// The lifetimes of properties in µs, by device. Those of a known schema without a lifetime are absent.
  private var lifetimes: [String: [String: Int64]] = [:]
  /// When the latest reply was sent, in µs of the boot; 0 before the first one. When it was read, if the wall clock was set in between. Never
  /// decreases.
  public private(set) var lastSent: Int64 = 0
  /// The same for the reply before it; nil for the first one.
  private var previousSent: Int64?
  /// Since when the wall clock has not been set, on the boot clock, as far as this program has seen, and its offset.
  private var wallClock: (steadySince: Int64, offset: Int64)

  /// Creates an intake for a watch with this minimum interval, in ms, that begins after `clock` was read.
  public init(at clock: ClockReading, minimumInterval: Int = 0) {
    confirmationDelay = Self.repeatInterval + Int64(minimumInterval) * 1000
    wallClock = (clock.boot - Self.timeBeforeStart, clock.offset)
  }

  /// Learns the lifetimes of values from a reply of Describe. It can be older than the schemas in the replies of Watch, which take
  /// precedence.
  public mutating func describe(_ schemas: [Contract.Schema]) {
    for schema in schemas where lifetimes[schema.device] == nil { learn(schema) }
  }

  private mutating func learn(_ schema: Contract.Schema) {
    let known = schema.properties.compactMap { property in
      // The limit prevents an overflow.
      property.lifetime.map { (property.name, Int64(min(max($0, 0), 1e9) * 1e6)) }
    }
    // Values that the new schema lacks end with their old lifetime, if it has passed.
    let declared = Set(schema.properties.map(\.name))
    let dropped = (lifetimes[schema.device] ?? [:]).filter { name, _ in
      !declared.contains(name) && devices[schema.device]?.properties[name] != nil
    }
    lifetimes[schema.device] = Dictionary(known) { first, _ in first }.merging(dropped) { new, _ in new }
  }

  /// The kind of a device, or nil if the daemon had no device with this name before the latest reply and has none now.
  public func kind(of device: String) -> String? { devices[device]?.kind }

  /// The latest observations of a device, as if they had been made at `time` (µs of the boot).
  public func current(of device: String, at time: Int64) -> [Observation] {
    let known = removedDevices.contains(device) ? nil : devices[device]
    return (known?.properties ?? [:]).sorted { $0.key < $1.key }.map { name, latest in
      Observation(device: device, property: name, unit: latest.unit, time: max(time, latest.time + 1), content: latest.content)
    }
  }

  /// Discards all state: after a disconnection, every value is new.
  public mutating func restart() { (devices, lifetimes, removedDevices, lastSent) = ([:], [:], [], 0) }

  /// Ends the values whose lifetime had passed without a confirmation when the latest reply was sent. No further reply is expected.
  public mutating func endUnconfirmed() -> [Observation] {
    var ends: [Observation] = []
    for (device, known) in devices.sorted(by: { $0.key < $1.key }) {
      for (property, latest) in known.properties.sorted(by: { $0.key < $1.key }) {
        if let end = end(of: latest, property, device, at: lastSent) { append(end, property, device, to: &ends) }
      }
    }
    return ends
  }

  /// The observations in a reply, and the devices that were removed. The ends of unconfirmed values come first, then the observations by
  /// device in the order of the reply.
  public mutating func read(_ result: Contract.Watch.Result, at clock: ClockReading) -> (observations: [Observation], removed: [String]) {
    var (ends, observations): ([Observation], [Observation]) = ([], [])
    for device in removedDevices { devices[device] = nil }
    removedDevices = []
    let isSteady = (clock.offset &- wallClock.offset).magnitude <= Self.tolerance
    wallClock = (isSteady ? wallClock.steadySince : clock.boot, clock.offset)
    previousSent = lastSent == 0 ? nil : lastSent
    lastSent = max(lastSent, result.time.flatMap { steadyTime(wall: $0, clock) } ?? clock.boot)
    for schema in result.schemas ?? [] { learn(schema) }
    for device in result.snapshot ?? [] { add(device, at: clock, to: &ends, &observations) }
    for reading in result.changes ?? [] { observe(reading, at: clock, to: &ends, &observations) }
    for event in result.events ?? [] where event.name == Contract.Event.removed {
      remove(event.device, event.text, at: time(wall: event.time, clock), to: &observations)
    }
    return (ends + observations, removedDevices)
  }

  /// Ends all values of a device that was removed at this time (µs of the boot), for the reason that the daemon gives, and those that were
  /// not confirmed until then with their lifetime.
  private mutating func remove(_ device: String, _ reason: String, at time: Int64, to observations: inout [Observation]) {
    guard let known = devices[device], !removedDevices.contains(device) else { return lifetimes[device] = nil }
    for (property, latest) in known.properties.sorted(by: { $0.key < $1.key }) {
      guard case .value = latest.content else { continue }
      end(latest, property, device, reason, at: time, to: &observations)
    }
    lifetimes[device] = nil
    removedDevices.append(device)
  }

  /// Ends an observation for this reason at this time (µs of the boot), or with its lifetime if it was not confirmed until then.
  private mutating func end(
    _ latest: Latest, _ property: String, _ device: String, _ reason: String, at time: Int64, to observations: inout [Observation]
  ) {
    let end = Latest(time: max(time, latest.time + 1), content: .absent(reason), unit: latest.unit)
    append(self.end(of: latest, property, device, at: time) ?? end, property, device, to: &observations)
  }

  private mutating func add(
    _ device: Contract.Device, at clock: ClockReading, to ends: inout [Observation], _ observations: inout [Observation]
  ) {
    devices[device.name, default: KnownDevice(kind: device.kind)].kind = device.kind
    let state = Contract.Reading(device: device.name, property: Observation.state, value: .string(device.state))
    let declared = Set(device.readings.map(\.property))
    if !declared.contains(Observation.state) { observe(state, at: clock, to: &ends, &observations) }
    for reading in device.readings { observe(reading, at: clock, to: &ends, &observations) }
    // A new schema may lack properties of the old one.
    for (name, latest) in devices[device.name]?.properties ?? [:] where name != Observation.state && !declared.contains(name) {
      end(latest, name, device.name, "no longer declared", at: lastSent, to: &observations)
      devices[device.name]?.properties[name] = nil
    }
  }

  private mutating func observe(
    _ reading: Contract.Reading, at clock: ClockReading, to ends: inout [Observation], _ observations: inout [Observation]
  ) {
    let content: Reading.Content = reading.value.map { .value($0) } ?? .absent(reading.reason ?? "unknown")
    var time = time(of: reading, at: clock)
    if var latest = devices[reading.device]?.properties[reading.property] {
      if let end = end(of: latest, reading.property, reading.device, at: time) {
        append(end, reading.property, reading.device, to: &ends)
        latest = end
      }
      // An equal value is a new sample only if it was measured later.
      if latest.content == content, reading.value == nil || reading.time == nil || time <= latest.time { return }
      // Times must increase: the value may have been replaced before it arrived, or become absent within the same microsecond.
      if time <= latest.time { time = latest.time + 1 }
    }
    append(Latest(time: time, content: content, unit: reading.unit), reading.property, reading.device, to: &observations)
  }

  private mutating func append(_ latest: Latest, _ property: String, _ device: String, to observations: inout [Observation]) {
    devices[device]?.properties[property] = latest
    observations.append(Observation(device: device, property: property, unit: latest.unit, time: latest.time, content: latest.content))
  }

  /// The end of a value with its lifetime, if the lifetime has passed at `time` (µs of the boot) without a confirmation. The lifetime is only
  /// looked up for a value that is old enough.
  private func end(of latest: Latest, _ property: String, _ device: String, at time: Int64) -> Latest? {
    guard time > latest.time + confirmationDelay, case .value = latest.content, let lifetime = lifetimes[device]?[property],
      time > latest.time + lifetime + confirmationDelay
    else { return nil }
    return Latest(time: latest.time + lifetime, content: Self.stale, unit: latest.unit)
  }

  /// The time of a reading on the boot clock. The wall-clock time is exact to 1 µs, but only if the clock has not been set since. The age is
  /// that when the reply was sent, exact to 1 ms.
  private func time(of reading: Contract.Reading, at clock: ClockReading) -> Int64 {
    guard let wall = reading.time else { return lastSent - age(of: reading) }
    if reading.value != nil { return min(lastSent, Self.time(wall: wall, near: lastSent - age(of: reading), clock)) }
    let since = time(wall: wall, clock)
    // If this reader has not seen the absence begin, the property is new since the reply before.
    return devices[reading.device]?.properties[reading.property] == nil ? max(since, previousSent ?? lastSent) : since
  }

  /// The age of a reading in µs; 0 if it has none.
  private func age(of reading: Contract.Reading) -> Int64 {
    let seconds = reading.age ?? 0
    return abs(seconds) < 1e9 ? Int64(seconds * 1e6) : 0
  }

  /// The wall-clock time of something that has no age, in µs on the boot clock, but not after the latest reply was sent.
  private func time(wall: Int, _ clock: ClockReading) -> Int64 {
    min(lastSent, steadyTime(wall: wall, clock) ?? Self.time(wall: wall, near: lastSent, clock))
  }

  /// A wall-clock time in µs on the boot clock, or `other` if they differ so much that the clock was set since.
  private static func time(wall: Int, near other: Int64, _ clock: ClockReading) -> Int64 {
    let (byWall, overflows) = Int64(wall).subtractingReportingOverflow(clock.offset)
    return !overflows && (byWall &- other).magnitude <= tolerance ? byWall : other
  }

  /// A wall-clock time in µs on the boot clock, or nil if the clock may have been set since.
  private func steadyTime(wall: Int, _ clock: ClockReading) -> Int64? {
    let (time, overflows) = Int64(wall).subtractingReportingOverflow(clock.offset)
    return !overflows && time >= wallClock.steadySince && time <= clock.boot ? time : nil
  }
}
