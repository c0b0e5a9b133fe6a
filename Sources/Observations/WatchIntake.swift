// Converts the replies of Watch to observations: each value once, with its time on the boot clock. It stores the latest observation of
// each property, because a snapshot repeats values. No I/O.

import Protocols
import Varlink

public struct WatchIntake {
  /// The largest difference between the measurement times computed from `time` and from `age` that transport delay can account for, in
  /// µs.
  private static let tolerance: Int64 = 1_000_000

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

  private var devices: [String: KnownDevice] = [:]
  /// Since when the wall clock has not been set, on the boot clock, as far as this program has seen, and its offset.
  private var wallClock: (steadySince: Int64, offset: Int64)?

  public init() {}

  /// The kind of a device, or nil if the daemon has no device with this name.
  public func kind(of device: String) -> String? { devices[device]?.kind }

  /// The latest observations of a device, as if they had been made at `time` (µs of the boot).
  public func current(of device: String, at time: Int64) -> [Observation] {
    (devices[device]?.properties ?? [:]).sorted { $0.key < $1.key }.map { name, latest in
      Observation(device: device, property: name, unit: latest.unit, time: max(time, latest.time + 1), content: latest.content)
    }
  }

  /// Discards all state: after a disconnection, every value is new.
  public mutating func restart() { devices = [:] }

  /// The observations in a reply, by device in the order of the reply, and the devices that were removed.
  public mutating func read(_ result: Contract.Watch.Result, at clock: ClockReading) -> (observations: [Observation], removed: [String]) {
    var observations: [Observation] = []
    var removed: [String] = []
    let isSteady = wallClock.map { (clock.offset &- $0.offset).magnitude <= Self.tolerance } ?? false
    wallClock = (isSteady ? wallClock?.steadySince ?? clock.boot : clock.boot, clock.offset)
    for device in result.snapshot ?? [] { add(device, at: clock, to: &observations) }
    for reading in result.changes ?? [] {
      if let observation = observe(reading, at: clock) { observations.append(observation) }
    }
    for event in result.events ?? [] where event.name == Contract.Event.removed {
      if devices.removeValue(forKey: event.device) != nil { removed.append(event.device) }
    }
    return (observations, removed)
  }

  private mutating func add(_ device: Contract.Device, at clock: ClockReading, to observations: inout [Observation]) {
    devices[device.name, default: KnownDevice(kind: device.kind)].kind = device.kind
    let state = Contract.Reading(device: device.name, property: Observation.state, value: .string(device.state))
    let declared = Set(device.readings.map(\.property))
    if !declared.contains(Observation.state), let changed = observe(state, at: clock) { observations.append(changed) }
    for reading in device.readings { if let changed = observe(reading, at: clock) { observations.append(changed) } }
    // A new schema may lack properties of the old one.
    for (name, latest) in devices[device.name]?.properties ?? [:] where name != Observation.state && !declared.contains(name) {
      devices[device.name]?.properties[name] = nil
      observations.append(
        Observation(device: device.name, property: name, unit: latest.unit, time: clock.boot, content: .absent("no longer declared")))
    }
  }

  private mutating func observe(_ reading: Contract.Reading, at clock: ClockReading) -> Observation? {
    let latest = devices[reading.device]?.properties[reading.property]
    let content: Reading.Content = reading.value.map { .value($0) } ?? .absent(reading.reason ?? "unknown")
    var time = time(of: reading, at: clock)
    if let latest {
      // An equal value is a new sample only if it was measured later.
      if latest.content == content, reading.value == nil || reading.time == nil || time <= latest.time { return nil }
      // Times must increase: the value may have been replaced before it arrived, or become absent within the same microsecond.
      if time <= latest.time { time = latest.time + 1 }
    }
    devices[reading.device]?.properties[reading.property] = Latest(time: time, content: content, unit: reading.unit)
    return Observation(device: reading.device, property: reading.property, unit: reading.unit, time: time, content: content)
  }

  /// The time of a reading on the boot clock. The age is that when it was sent, exact to 1 ms, and wrong by the time for which this program
  /// did not read. The wall-clock time is exact to 1 µs, but only if the clock has not been set since.
  private func time(of reading: Contract.Reading, at clock: ClockReading) -> Int64 {
    guard reading.value != nil else { return clock.boot }
    let age = (reading.age ?? 0) * 1e6
    let byAge = clock.boot - (abs(age) < 1e15 ? Int64(age) : 0)
    guard let wall = reading.time else { return byAge }
    let (byWall, overflows) = Int64(wall).subtractingReportingOverflow(clock.offset)
    if !overflows, (byWall &- byAge).magnitude <= Self.tolerance { return byWall }
    let isSinceSteady = !overflows && byWall <= clock.boot && byWall >= wallClock?.steadySince ?? .max
    return isSinceSteady ? byWall : byAge
  }
}
