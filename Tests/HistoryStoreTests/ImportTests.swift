// Blocks from elsewhere: imported once, with the numbers of this store, and not over other values.

import HistoryStore
import Protocols
import SQLite
import SampleBlocks
import Testing

@Suite struct ImportTests {
  /// A block of an hour of speeds, whose series has the number 70.
  private func block(from start: Int64, values: [Int] = [1, 2, 3]) throws -> Block {
    var builder = BlockBuilder()
    for (index, value) in values.enumerated() { try builder.append(.value(.int(value)), series: 70, at: start + Int64(index) * second) }
    return try Block(builder.build(from: start, to: start + 10 * second, layout: .columns))
  }

  private func imported(_ block: Block, device: String = "ev", source: String = "file", continues: Bool = false) -> ImportedBlock {
    ImportedBlock(
      device: device, source: source, series: [70: SeriesKey(device: device, property: "speed", type: .int, unit: "km/h")], block: block,
      continues: continues)
  }

  private let year: Int64 = 1_700_000_000 * second

  @Test func `a block is imported once per source, also after it was merged`() throws {
    let directory = TestDirectory()
    let store = try HistoryStore(directory: directory.path)
    let first = imported(try block(from: year))
    let following = imported(try block(from: year + 10 * second, values: [4, 5]), continues: true)
    #expect(try store.add(first) == 3)
    #expect(try store.add(following) == 2)
    #expect(try store.add(first) == 0)
    try store.compact()
    #expect(try store.add(following) == 0)
    let samples = try store.reader.samples("speed")
    #expect(samples.count == 5)
    #expect(samples.first == .sample(Sample(time: year, content: .value(.int(1)))))
    #expect(try store.reader.span() == year...(year + 20 * second))
    #expect(try store.reader.plot("speed", in: year...(year + 20 * second), points: 1)?.points.first??.maximum == 5)
  }

  @Test func `values that are recorded already are not imported over`() throws {
    let directory = TestDirectory()
    let store = try HistoryStore(directory: directory.path)
    #expect(try store.add(imported(block(from: year))) == 3)
    let other = imported(try block(from: year + 5 * second), source: "other")
    let error = #expect(throws: StoreError.self) { try store.add(other) }
    #expect(error?.kind == .invalid)
    #expect(
      error?.description == "values of ev from 2023-11-14T22:13:25Z to 2023-11-14T22:13:35Z are already recorded; delete them first")
    try store.compact()
    #expect(throws: StoreError.self, "also after merging") { try store.add(other) }
    #expect(throws: StoreError.self) { try store.add(imported(block(from: year - 5 * second), source: "other")) }
    var recorder = TestRecorder(store, boot: try store.boot("b", offset: year), at: 100 * second)
    try recorder.record(1)
    try recorder.wait(10 * second)
    #expect(throws: StoreError.self, "a boot with an offset") { try store.add(imported(block(from: year + 105 * second))) }
    #expect(try store.add(imported(block(from: year + 20 * second))) == 3, "between the others")
    #expect(try store.add(imported(block(from: year + 5 * second), device: "other", source: "other")) == 3, "another device")
    try store.delete(HistoryStore.Deletion(device: "ev"))
    #expect(try store.add(other) == 3)
    #expect(try store.add(imported(block(from: year - 60 * second))) == 3)
  }

  @Test func `a deleted block can be imported again`() throws {
    let directory = TestDirectory()
    let store = try HistoryStore(directory: directory.path)
    let one = imported(try block(from: year))
    #expect(try store.add(one) == 3)
    try store.delete(HistoryStore.Deletion(device: "ev", range: year...(year + 10 * second)))
    #expect(try store.add(one) == 3)
    #expect(try store.reader.samples("speed").count == 3)
  }

  @Test func `a deleted part of a merged block can be imported again`() throws {
    let directory = TestDirectory()
    let store = try HistoryStore(directory: directory.path)
    let values = Array(0..<9)
    #expect(try store.add(imported(block(from: year, values: values))) == 9)
    try store.compact()
    #expect(throws: StoreError.self) { try store.add(imported(block(from: year + 3 * second, values: [3]), source: "other")) }
    try store.delete(HistoryStore.Deletion(device: "ev", range: year + 3 * second...(year + 5 * second)))
    var builder = BlockBuilder()
    for value in 3...5 { try builder.append(.value(.int(value)), series: 70, at: year + Int64(value) * second) }
    let middle = try Block(builder.build(from: year + 3 * second, to: year + 5 * second, layout: .whole))
    #expect(try store.add(imported(middle, source: "other")) == 3)
    let found = try store.reader.samples("speed").compactMap { (item) -> Int? in
      if case .sample(let sample) = item, case .value(.int(let value)) = sample.content { value } else { nil }
    }
    #expect(found.sorted() == values)
    #expect(try store.reader.check().damage == [])
  }

  @Test func `series that are not described or have another type are rejected`() throws {
    let directory = TestDirectory()
    let store = try HistoryStore(directory: directory.path)
    var one = imported(try block(from: year))
    one.series = [70: SeriesKey(device: "ev", property: "speed", type: .float)]
    #expect(throws: StoreError.self) { try store.add(one) }
    one.series = [:]
    let error = #expect(throws: StoreError.self) { try store.add(one) }
    #expect(error?.description.contains("series 70") == true)
    #expect(try store.reader.span() == nil)
  }

  @Test func `a period that does not exist after all is removed`() throws {
    let directory = TestDirectory()
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("b", offset: 0)
    let id = try store.store(
      Period(device: "new", kind: .trip, start: BootTime(boot: boot, time: 1), end: BootTime(boot: boot, time: 2), zone: "UTC"))
    #expect(try store.reader.periods().map(\.id) == [id])
    try store.removePeriod(id)
    #expect(try store.reader.periods() == [])
    #expect(try store.reader.allBoots().map(\.uuid) == ["b"])
  }
}
