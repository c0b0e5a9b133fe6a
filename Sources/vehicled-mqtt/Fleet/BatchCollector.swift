// Collects the samples of one device, and encodes them as a batch. docs/fleet.md describes the format. No I/O.

import Observations
import Protocols
import SampleBlocks

struct BatchCollector {
  /// What distinguishes a batch from all others: consumers drop repeats, and notice gaps.
  struct Identity: Equatable {
    /// The name of the vehicle in topics.
    var vehicle: String
    /// A random name for this run of the bridge.
    var session: String
    /// 1 for the first batch of the session.
    var sequence: Int
  }

  private struct Sample {
    /// Numbered from 1.
    var series: Int
    /// In µs of the boot.
    var time: Int64
    var content: Reading.Content
  }

  private struct Key: Hashable {
    var property: String
    var type: ValueType
    var unit: String?
  }

  /// Times are rounded down to this, in µs: their digits would be more than half of a batch.
  private static let resolution: Int64 = 10_000
  private static func rounded(_ time: Int64) -> Int64 { time / resolution * resolution }
  /// The number of samples after which a batch is sent early.
  private static let maxCount = 20_000

  private let device: String
  private var samples: [Sample] = []
  private var keys: [Key] = []
  private var series: [Key: Int] = [:]
  /// The series of each property's latest value, for absences, which have no type.
  private var latest: [String: Key] = [:]
  /// The time up to which earlier batches cover the device, in µs of the boot.
  private var start: Int64?

  init(device: String) { self.device = device }

  var isEmpty: Bool { samples.isEmpty }
  var isFull: Bool { samples.count >= Self.maxCount }

  /// Adds an observation. An absence before the first value is omitted, because there is nothing that it ends.
  mutating func append(_ observation: Observation) {
    var key = latest[observation.property]
    if case .value(let value) = observation.content {
      let new = Key(property: observation.property, type: value.type, unit: observation.unit)
      if let old = key, old != new { append(.absent("its type or unit has changed"), of: old, at: observation.time) }
      key = new
      latest[observation.property] = new
    }
    if let key { append(observation.content, of: key, at: observation.time) }
  }

  private mutating func append(_ content: Reading.Content, of key: Key, at time: Int64) {
    let id = series[key] ?? keys.count + 1
    if series[key] == nil {
      series[key] = id
      keys.append(key)
    }
    samples.append(Sample(series: id, time: time, content: content))
  }

  /// Returns batches of the collected samples, whose last values were valid until `now` (µs of the boot). There are several if one would be
  /// larger than `maxSize` bytes. `clock` converts times to those of the wall clock; `identity` is that of the first batch.
  mutating func cut(at now: Int64, _ clock: ClockReading, _ identity: Identity, maxSize: Int = .max) -> [[UInt8]] {
    guard let first = samples.first else { return [] }
    let begin = start ?? samples.reduce(first.time) { min($0, $1.time) }
    let end = samples.reduce(max(begin, now)) { max($0, $1.time) }
    defer { (samples, keys, series, start) = ([], [], [:], end) }
    return batches(samples, from: begin, to: end, clock, identity, maxSize)
  }

  private func batches(
    _ samples: [Sample], from begin: Int64, to end: Int64, _ clock: ClockReading, _ identity: Identity, _ maxSize: Int
  ) -> [[UInt8]] {
    let batch = encode(samples, from: begin, to: end, clock, identity)
    let times = samples.map(\.time).filter { $0 >= begin }.sorted()
    guard batch.count > maxSize, let first = times.first, let middle = times.first(where: { $0 > max(first, times[times.count / 2] - 1) })
    else {
      return [batch]
    }
    let before = samples.filter { $0.time < middle }
    // The second part repeats the values at its start.
    let values = Dictionary(before.map { ($0.series, $0) }) { $1 }.values.sorted { $0.series < $1.series }
    let earlier = batches(before, from: begin, to: middle, clock, identity, maxSize)
    var next = identity
    next.sequence += earlier.count
    return earlier + batches(values + samples.filter { $0.time >= middle }, from: middle, to: end, clock, next, maxSize)
  }

  private func encode(_ samples: [Sample], from begin: Int64, to end: Int64, _ clock: ClockReading, _ identity: Identity) -> [UInt8] {
    var builder = BlockBuilder()
    for sample in samples {
      do throws(BlockError) {
        try builder.append(sample.content, series: sample.series, at: Self.rounded(sample.time + clock.offset))
      } catch {
        assertionFailure("the type of a value matches its series: \(error)")
      }
    }
    let used = Set(samples.map(\.series))
    let header = JSON.members([
      "vehicle": .string(identity.vehicle), "device": .string(device), "session": .string(identity.session),
      "sequence": .int(identity.sequence), "synchronised": .bool(clock.isSynchronised),
      "series": .array(
        keys.enumerated().filter { used.contains($0.offset + 1) }.map { index, key in
          .array([.int(index + 1), .string(key.property), .string(key.type.rawValue), key.unit.map { .string($0) } ?? .null])
        }),
    ]).text
    let block = builder.build(
      from: Self.rounded(begin + clock.offset), to: Self.rounded(end + clock.offset), layout: .whole, effort: .smallest)
    return Batch.encode(header: Array(header.utf8), block: block)
  }
}
