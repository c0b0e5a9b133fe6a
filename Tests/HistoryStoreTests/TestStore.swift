// A store in a temporary directory, and recordings for it.

import CSQLite
import Foundation
import HistoryStore
import Protocols
import SQLite
import SampleBlocks
import Testing

/// A directory that is removed at the end of the test.
final class TestDirectory {
  let path: String
  init() { path = NSTemporaryDirectory() + "history-\(UUID().uuidString)" }
  deinit { try? FileManager.default.removeItem(atPath: path) }

  var databasePath: String { path + "/history.db" }

  /// Changes the database without the store.
  func change(_ sql: String) {
    var handle: OpaquePointer?
    sqlite3_open(databasePath, &handle)
    #expect(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK)
    sqlite3_close_v2(handle)
  }

  /// The number of a page of the database.
  func page(_ sql: String) -> Int {
    var (handle, statement): (OpaquePointer?, OpaquePointer?) = (nil, nil)
    sqlite3_open(databasePath, &handle)
    #expect(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
    defer {
      sqlite3_finalize(statement)
      sqlite3_close_v2(handle)
    }
    return Int(sqlite3_column_int64(statement, 0))
  }
}

/// A second, in the microseconds of the store.
let second: Int64 = 1_000_000

/// Records samples of one device in blocks of ten seconds, as the service does.
struct TestRecorder {
  let store: HistoryStore
  var device = "ev"
  var boot: Int
  var blockDuration = 10 * second
  private var builder = BlockBuilder()
  private var start: Int64
  private(set) var now: Int64
  private var continues = false

  init(_ store: HistoryStore, device: String = "ev", boot: Int, at time: Int64 = 0) {
    self.store = store
    self.device = device
    self.boot = boot
    (start, now) = (time, time)
  }

  mutating func record(_ content: Reading.Content, _ property: String = "speed", type: ValueType = .float, unit: String? = "km/h") throws {
    let series = try store.series(SeriesKey(device: device, property: property, type: type, unit: unit))
    try builder.append(content, series: series, at: now)
  }

  mutating func record(_ number: Double, _ property: String = "speed") throws { try record(.value(.float(number)), property) }

  /// Lets time pass, and appends a block whenever it is long enough.
  mutating func wait(_ duration: Int64) throws {
    let end = now + duration
    while now < end {
      now = min(end, start + blockDuration)
      if now - start >= blockDuration { try flush() }
    }
  }

  mutating func flush() throws {
    guard now > start else { return }
    let bytes = builder.build(from: start, to: now, layout: .whole)
    try store.append(NewBlock(device: device, boot: boot, start: start, end: now, continues: continues, bytes: bytes))
    (start, continues) = (now, true)
  }

  /// Leaves a gap, as after a restart of the service.
  mutating func interrupt(_ duration: Int64) throws {
    try flush()
    now += duration
    (start, continues) = (now, false)
  }
}

extension HistoryReader {
  func samples(_ property: String, of device: String = "ev", in range: ClosedRange<Int64> = 0 ... .max) throws -> [HistorySample] {
    guard let series = try series(of: device).first(where: { $0.key.property == property }) else { return [] }
    var iterator = try samples(of: series, in: range)
    var samples: [HistorySample] = []
    while let sample = try iterator.next() { samples.append(sample) }
    return samples
  }

  func plot(_ property: String, of device: String = "ev", in range: ClosedRange<Int64>, points: Int) throws -> Plot? {
    guard let series = try series(of: device).first(where: { $0.key.property == property }) else { return nil }
    return try plot(series, in: range, points: points)
  }
}

extension HistorySample {
  static func number(_ number: Double, _ time: Int64) -> HistorySample { .sample(Sample(time: time, content: .value(.float(number)))) }
}
