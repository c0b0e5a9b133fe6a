// Deletion by device, property and time: deleted values are gone from samples, rollups and the file.

import Foundation
import HistoryStore
import Protocols
import Testing

@Suite("Deletion of history") struct DeletionTests {
  private let directory = TestDirectory()

  private func store(compacting: Bool) throws -> HistoryStore {
    let store = try HistoryStore(directory: directory.path)
    var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
    for index in 0..<600 {
      try recorder.record(Double(index))
      try recorder.record(.value(.string("secret-\(index / 10)")), "place", type: .string, unit: nil)
      try recorder.wait(second)
    }
    var other = TestRecorder(store, device: "board", boot: recorder.boot)
    try other.record(5)
    try other.wait(60 * second)
    if compacting { try store.compact() }
    return store
  }

  @Test(arguments: [false, true]) func `a property is gone from the file`(compacting: Bool) throws {
    let store = try store(compacting: compacting)
    let speeds = try store.reader.samples("speed")
    #expect(try store.delete(HistoryStore.Deletion(device: "ev", property: "place")) == [])
    #expect(try store.reader.series(of: "ev").map(\.key.property) == ["speed"])
    #expect(try store.reader.samples("speed") == speeds)
    let file = try Data(contentsOf: URL(fileURLWithPath: directory.databasePath))
    #expect(file.range(of: Data("place".utf8)) == nil)
    #expect(try Data(contentsOf: URL(fileURLWithPath: directory.databasePath + "-wal")).isEmpty)
    #expect(try store.reader.check().damage == [])
    #expect { try store.delete(HistoryStore.Deletion(device: "ev", property: "place")) } throws: {
      "\($0)" == "property \"place\" of ev has no recorded values"
    }
  }

  @Test(arguments: [false, true]) func `a time range is absent`(compacting: Bool) throws {
    let store = try store(compacting: compacting)
    try store.delete(HistoryStore.Deletion(device: "ev", range: 100 * second + 1...200 * second))
    let samples = try store.reader.samples("speed")
    #expect(samples.count(where: { if case .sample(let sample) = $0, case .value = sample.content { true } else { false } }) == 500)
    let plot = try #require(try store.reader.plot("speed", in: 0...(600 * second - 1), points: 60))
    #expect(plot.points[9]?.last == 99)
    #expect(plot.points[11...19].allSatisfy { $0 == nil })
    #expect(plot.points[20]?.minimum == 201)
    #expect(try store.reader.samples("speed", of: "board").count == 1)
    #expect(try store.reader.check().damage == [])
  }

  @Test(arguments: [false, true]) func `values that began before a deleted range are not carried through it`(compacting: Bool) throws {
    let store = try HistoryStore(directory: directory.path)
    var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
    try recorder.record(7, "odometer")
    for index in 0..<100 {
      if index == 45 { try recorder.record(8, "odometer") }
      try recorder.record(Double(index))
      try recorder.wait(second)
    }
    if compacting { try store.compact(all: true) }
    // Blocks of ten seconds: the range begins and ends within one, or covers exactly some.
    for range in [32 * second...58 * second, 60 * second...(80 * second - 1)] {
      try store.delete(HistoryStore.Deletion(device: "ev", range: range))
    }
    let odometer = try store.reader.samples("odometer").filter { $0 != .number(7, 0) }
    #expect(!odometer.contains(.number(8, 45 * second)) && !odometer.isEmpty, "\(odometer)")
    let plot = try #require(try store.reader.plot("odometer", in: 0...(100 * second - 1), points: 100))
    #expect(plot.points[31]?.last == 7 && plot.points[33...].allSatisfy { $0 == nil })
    #expect(try store.reader.check().damage == [])
  }

  @Test func `periods of deleted values stay as they are`() throws {
    let store = try store(compacting: true)
    func period(_ start: Int64, _ end: Int64) -> Period {
      Period(
        device: "ev", kind: .trip, start: BootTime(boot: 1, time: start * second), end: BootTime(boot: 1, time: end * second), zone: "UTC")
    }
    for (start, end) in [(0, 100), (150, 300), (400, 500)] as [(Int64, Int64)] { try store.store(period(start, end)) }
    try store.delete(HistoryStore.Deletion(device: "ev", property: "place", range: 0...(600 * second), affectsPeriods: false))
    #expect(try store.reader.periods().allSatisfy { !$0.isFrozen })
    try store.delete(HistoryStore.Deletion(device: "ev", property: "speed", range: 420 * second...430 * second))
    try store.delete(HistoryStore.Deletion(device: "ev", range: 0...(200 * second)))
    let left = try store.reader.periods(of: "ev")
    #expect(left.map(\.start.time) == [400 * second, 150 * second] && left.allSatisfy(\.isFrozen))
    try store.replacePeriods(of: "ev", in: 0...(600 * second), with: [])
    #expect(try store.reader.periods(of: "ev") == left)
    #expect(try #require(try store.reader.span()).upperBound == 600 * second)
  }

  @Test func `the recorded time span follows a deletion`() throws {
    let store = try HistoryStore(directory: directory.path)
    for (name, offset) in [("a", 0), ("b", 100_000 * second)] as [(String, Int64)] {
      var recorder = TestRecorder(store, boot: try store.boot(name, offset: offset))
      try recorder.record(1)
      try recorder.wait(60 * second)
      try store.compact(all: true)
    }
    #expect(try store.reader.span() == 0...(100_060 * second))
    try store.delete(HistoryStore.Deletion(device: "ev", range: 0...(1000 * second)))
    #expect(try store.reader.span() == 100_000 * second...(100_060 * second))
  }

  @Test func `a failed write is reported, and nothing is deleted`() throws {
    let store = try store(compacting: true)
    let samples = try store.reader.samples("place")
    directory.change("CREATE TRIGGER failure BEFORE DELETE ON block BEGIN SELECT RAISE(ABORT, 'disk failure'); END")
    #expect { try store.delete(HistoryStore.Deletion(device: "ev", property: "place")) } throws: { "\($0)".contains("disk failure") }
    #expect(try store.reader.samples("place") == samples)
  }

  @Test func `a range can begin or end at any time`() throws {
    let store = try store(compacting: true)
    for range in [.min ... -1, (.max - 1)...(.max), Int64.min ... .min, .max ... .max] {
      try store.delete(HistoryStore.Deletion(device: "ev", range: range))
    }
    #expect(try store.reader.samples("speed").count > 500)
    try store.delete(HistoryStore.Deletion(device: "ev", property: "place", range: .min ... .max))
    try store.delete(HistoryStore.Deletion(device: "ev", range: .min...(300 * second)))
    let plot = try #require(try store.reader.plot("speed", in: 0...(600 * second - 1), points: 60))
    #expect(plot.points[29] == nil && plot.points[31] != nil)
  }

  @Test(arguments: [false, true]) func `a device`(compacting: Bool) throws {
    let store = try store(compacting: compacting)
    try store.delete(HistoryStore.Deletion(device: "ev"))
    #expect(try store.reader.devices() == ["board"])
    #expect(try store.reader.samples("speed", of: "board").count == 1)
    // The name can be recorded again.
    #expect(try store.series(SeriesKey(device: "ev", property: "speed", type: .float)) > 3)
  }
}
