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

  @Test func `a failed write is reported, and nothing is deleted`() throws {
    let store = try store(compacting: true)
    let samples = try store.reader.samples("place")
    directory.change("CREATE TRIGGER failure BEFORE UPDATE ON block BEGIN SELECT RAISE(ABORT, 'disk failure'); END")
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
