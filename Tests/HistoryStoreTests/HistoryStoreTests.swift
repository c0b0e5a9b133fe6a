// The store: appended samples are read back, before and after merging, across gaps, boots, restarts and corrected clocks.

import Foundation
import Protocols
import SQLite
import SampleBlocks
import Testing

@testable import HistoryStore

@Suite("History store") struct HistoryStoreTests {
  private let directory = TestDirectory()

  private func open() throws -> HistoryStore { try HistoryStore(directory: directory.path) }

  @Test func `samples survive merging and a restart`() throws {
    let offset: Int64 = 1_700_000_000 * second
    var expected: [HistorySample] = []
    do {
      let store = try open()
      var recorder = TestRecorder(store, boot: try store.boot("a", offset: offset), at: 77)
      for index in 0..<4000 {
        try recorder.record(Double(index % 100) / 10)
        if index % 50 == 0 { try recorder.record(.value(.string(index < 2000 ? "park" : "drive")), "gear", type: .string, unit: nil) }
        if index % 500 == 499 { try recorder.record(.absent("stale"), "gear", type: .string, unit: nil) }
        expected.append(.number(Double(index % 100) / 10, recorder.now + offset))
        try recorder.wait(second / 2)
      }
      try recorder.flush()
      #expect(try store.reader.samples("speed") == expected)
      let gears = try store.reader.samples("gear")
      #expect(gears.count == 88)
      #expect(try store.compact(all: false) == [])
      #expect(try store.reader.samples("speed") == expected)
      #expect(try store.compact() == [])
      #expect(try store.reader.samples("speed") == expected)
      #expect(try store.reader.samples("gear") == gears)
      let check = try store.reader.check()
      #expect(check.blocks == 3)
      #expect(check.damage == [])
    }
    let reader = try HistoryReader(directory: directory.path)
    #expect(try reader.samples("speed") == expected)
    #expect(try reader.devices() == ["ev"])
    // Part of the range, and the value that is valid at its start.
    let start = offset + 77 + 100 * second
    #expect(
      try reader.samples("speed", in: start + 1...start + second) == [
        .number(0, start), .number(0.1, start + second / 2), .number(0.2, start + second),
      ])
  }

  @Test func `a gap is a gap, before and after merging`() throws {
    let store = try open()
    var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
    try recorder.record(50)
    try recorder.wait(65 * second)
    try recorder.interrupt(100 * second)
    try recorder.record(70)
    try recorder.wait(20 * second)
    try recorder.record(.absent("link down"))
    try recorder.wait(20 * second)
    let expected: [HistorySample] = [
      .number(50, 0), .gap(65 * second), .number(70, 165 * second), .sample(Sample(time: 185 * second, content: .absent("link down"))),
    ]
    for _ in 0..<2 {
      #expect(try store.reader.samples("speed") == expected)
      let plot = try #require(try store.reader.plot("speed", in: 0...(200 * second - 1), points: 20))
      #expect(plot.width == 10 * second)
      #expect(plot.points.map { $0?.maximum } == (0..<20).map { $0 < 7 ? 50 : $0 < 16 || $0 > 18 ? nil : 70 })
      #expect(plot.points[6]?.covered == 5 * second)
      #expect(plot.points.reduce(0) { $0 + ($1?.samples ?? 0) } == 2)
      try store.compact()
    }
    // A range that begins within the gap, and one in which a much earlier value is valid.
    #expect(try store.reader.samples("speed", in: 100 * second...150 * second) == [])
    #expect(try store.reader.samples("speed", in: 40 * second...50 * second) == [.number(50, 0)])
  }

  @Test func `a value is known at the start of a range, however old it is`() throws {
    let store = try open()
    var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
    try recorder.record(12_345, "odometer")
    for _ in 0..<4000 {
      try recorder.record(1)
      try recorder.wait(second)
    }
    for _ in 0..<2 {
      #expect(try store.reader.samples("odometer", in: 3990 * second...3995 * second) == [.number(12_345, 0)])
      try store.compact(all: false)
      try recorder.wait(30 * second)
    }
    let plot = try #require(try store.reader.plot("odometer", in: 0...(4000 * second - 1), points: 10))
    #expect(plot.points.map { $0?.mean } == Array(repeating: 12_345, count: 10))
    // A rollup of a minute belongs to the point that contains its middle.
    #expect(plot.points.allSatisfy { abs(($0?.covered ?? 0) - 400 * second) <= 60 * second })
    #expect(abs(plot.points.reduce(0) { $0 + ($1?.covered ?? 0) } - 4000 * second) <= second)
  }

  @Test func `a clock that is set later moves all samples of its boot`() throws {
    let store = try open()
    let (old, boot) = (try store.boot("old", offset: 5000 * second), try store.boot("new", offset: 10 * second))
    for boot in [old, boot] {
      var recorder = TestRecorder(store, boot: boot)
      try recorder.record(Double(boot))
      try recorder.wait(20 * second)
      try store.compact()
    }
    #expect(try store.reader.boots().map(\.id) == [boot, old])
    #expect(try store.setOffset(20 * second, synchronised: false, ofBoot: boot))
    #expect(try store.setOffset(9000 * second, synchronised: true, ofBoot: boot))
    #expect(try !store.setOffset(7000 * second, synchronised: true, ofBoot: boot), "the first synchronised clock is final")
    #expect(try store.reader.boots().map(\.id) == [old, boot])
    #expect(
      try store.reader.samples("speed") == [.number(Double(old), 5000 * second), .gap(5020 * second), .number(Double(boot), 9000 * second)])
    #expect(try store.reader.samples("speed", in: 0...4999 * second) == [])
    #expect(try store.boot("new", offset: 1) == boot)
  }

  @Test func `a changed unit or type, and a renamed device, start other series`() throws {
    let store = try open()
    let key = SeriesKey(device: "ev", property: "speed", type: .float, unit: "km/h")
    let first = try store.series(key)
    #expect(try store.series(key) == first)
    var other = key
    other.unit = "mph"
    #expect(try store.series(other) == first + 1)
    other.type = .int
    #expect(try store.series(other) == first + 2)
    try store.rename("ev", to: "old ev")
    #expect(try store.series(key) == first + 3)
    #expect(try store.reader.series(of: "old ev").map(\.id) == [first, first + 1, first + 2])
    #expect { try store.rename("car", to: "x") } throws: { "\($0)" == "device \"car\" has no recorded values; use one of ev, old ev" }
  }

  @Test func `a damaged block is skipped and named, and is a gap`() throws {
    let store = try open()
    var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
    for index in 0..<60 {
      try recorder.record(Double(index))
      try recorder.wait(second)
    }
    directory.change("UPDATE recent SET data = CAST(substr(data, 1, 30) || zeroblob(9) AS BLOB) WHERE id = 3")
    for table in ["recent block", "block"] {
      let samples = try store.reader.samples("speed")
      #expect(samples.contains(.gap(20 * second)))
      #expect(samples.count == 51)
      let check = try store.reader.check()
      #expect(check.damage.count == 1)
      #expect(check.damage.first?.hasPrefix("\(table) ") == true)
      #expect(check.damage.first?.contains("of ev at 1970-01-01T00:00:20Z (10 s): ") == true, "\(check.damage)")
      let merged = try store.compact()
      #expect(merged.count == (table == "block" ? 0 : 1))
    }
    let plot = try #require(try store.reader.plot("speed", in: 0...(60 * second - 1), points: 6))
    #expect(plot.points.map { $0?.maximum } == [9, 19, nil, 39, 49, 59])
    #expect(plot.damage.count == 1)
  }

  @Test func `a damaged page only affects its block`() throws {
    do {
      let store = try open()
      var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
      for index in 0..<300 {
        // Text that cannot be compressed needs pages of its own.
        let noise = (0..<200).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
        try recorder.record(.value(.string(noise)), "noise", type: .string, unit: nil)
        try recorder.record(Double(index))
        try recorder.wait(second)
      }
      try store.checkpoint()
    }
    let page = directory.page("SELECT pageno FROM dbstat WHERE name = 'recent' AND pagetype = 'overflow' ORDER BY pageno LIMIT 1 OFFSET 20")
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: directory.databasePath))
    try handle.seek(toOffset: UInt64(page - 1) * 4096)
    try handle.write(contentsOf: Data((0..<4096).map { _ in UInt8.random(in: 128...255) }))
    try handle.close()
    let store = try open()
    let check = try store.reader.check()
    #expect(check.damage.contains { $0.contains("recent block") } && check.blocks == 30, "\(check)")
    let samples = try store.reader.samples("speed")
    #expect((280...299).contains(samples.count), "\(samples.count)")
    #expect(try #require(try store.reader.plot("speed", in: 0...(300 * second - 1), points: 30)).points.filter { $0 == nil }.count == 1)
  }

  @Test func `a second instance, another file, a later version, garbage`() throws {
    do {
      let store = try open()
      #expect { _ = try open() } throws: { ($0 as? StoreError)?.kind == .inUse && "\($0)".contains("in use by another vehicled-history") }
      #expect(try store.reader.devices() == [])
    }
    directory.change("PRAGMA user_version = 9")
    #expect { _ = try open() } throws: { ($0 as? StoreError)?.kind == .tooNew }
    directory.change("PRAGMA application_id = 9")
    #expect { _ = try open() } throws: { ($0 as? StoreError)?.kind == .foreign && "\($0)".contains("not a history of vehicled") }
    try Data(repeating: 7, count: 9000).write(to: URL(fileURLWithPath: directory.databasePath))
    #expect { _ = try open() } throws: { ($0 as? StoreError)?.kind == .damaged && "\($0)".contains("is damaged") }
    let missing = TestDirectory()
    #expect { _ = try HistoryReader(directory: missing.path) } throws: { "\($0)".contains("there is no history in") }
    #expect { _ = try HistoryStore(directory: "/proc/no-such-place") } throws: { ($0 as? StoreError)?.kind == .readOnly }
  }

  @Test func `an iterator goes on while blocks are merged`() throws {
    let store = try open()
    var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
    for index in 0..<200 {
      try recorder.record(Double(index))
      try recorder.wait(second)
    }
    let series = try #require(try store.reader.series().first)
    var iterator = try store.reader.samples(of: series, in: 0 ... .max)
    var numbers: [Double] = []
    while let sample = try iterator.next() {
      guard case .sample(let sample) = sample, case .value(.float(let number)) = sample.content else {
        Issue.record("\(sample)")
        continue
      }
      numbers.append(number)
      if numbers.count == 55 { try store.compact() }
    }
    #expect(numbers == (0..<200).map(Double.init))
  }

  @Test func `retention by age and size freezes periods and keeps rollups`() throws {
    let store = try open()
    let boot = try store.boot("a", offset: 0)
    try store.setOffset(0, synchronised: true, ofBoot: boot)
    var recorder = TestRecorder(store, boot: boot)
    for index in 0..<7200 {
      try recorder.record(Double(index % 1000))
      try recorder.wait(second)
    }
    try store.compact()
    let trips = [0, 3600].map { start in
      Period(
        device: "ev", kind: .trip, start: BootTime(boot: boot, time: start * second),
        end: BootTime(boot: boot, time: (start + 600) * second), zone: "Europe/Berlin")
    }
    for trip in trips { try store.store(trip) }
    let before = try #require(try store.reader.plot("speed", in: 0...(7200 * second - 1), points: 10))
    #expect(try store.drop(before: 1800 * second) == 1)
    #expect(try store.reader.periods().map(\.isFrozen) == [false, true])
    let after = try #require(try store.reader.plot("speed", in: 0...(7200 * second - 1), points: 10))
    #expect(before.points.map { $0?.mean } == after.points.map { $0?.mean })
    #expect(try store.reader.samples("speed", in: 0...800 * second).isEmpty)
    #expect(try store.limit(toSize: 0) == 7)
    #expect(try store.reader.periods().map(\.isFrozen) == [true, true])
    #expect(
      try store.reader.plot("speed", in: 0...(7200 * second - 1), points: 10)?.points.map { $0?.maximum }
        == after.points.map { $0?.maximum })
  }

  /// A computer that boots without a network and a battery-backed clock continues with an old time.
  @Test func `retention does not rely on the time of a boot whose clock was not synchronised`() throws {
    let store = try open()
    let day = 86_400 * second
    func record(_ uuid: String, offset: Int64, synchronised: Bool) throws {
      let boot = try store.boot(uuid, offset: offset)
      if synchronised { try store.setOffset(offset, synchronised: true, ofBoot: boot) }
      var recorder = TestRecorder(store, boot: boot)
      for index in 0..<10 {
        try recorder.record(Double(index))
        try recorder.wait(second)
      }
      try store.compact()
    }
    func rest() throws -> [Int64] {
      try store.database.rows("SELECT boot FROM block ORDER BY boot") { (row) throws(StoreError) in row.int(0) }
    }
    try record("unknown, before day 100", offset: 0, synchronised: false)
    try record("day 100", offset: 100 * day, synchronised: true)
    try record("unknown, before day 300", offset: 100 * day, synchronised: false)
    try record("day 300", offset: 300 * day, synchronised: true)
    try record("unknown, after day 300", offset: 100 * day, synchronised: false)
    #expect(try store.drop(before: 50 * day) == 0)
    #expect(try store.drop(before: 290 * day) == 2)
    #expect(try rest() == [3, 4, 5])
    #expect(try store.dropOldest(1) == 1)
    #expect(try rest() == [4, 5])
    #expect(try store.dropOldest(1) == 1)
    #expect(try rest() == [5])
    #expect(try store.drop(before: 1000 * day) == 0)
    #expect(try store.dropOldest(1) == 1)
  }

  /// SQLite reports a database that may not grow like a full disk.
  @Test func `a full disk drops the oldest merged blocks, and never periods`() throws {
    let store = try open()
    let boot = try store.boot("a", offset: 0)
    var recorder = TestRecorder(store, boot: boot)
    func record(_ seconds: Int) throws {
      for _ in 0..<seconds {
        for property in 0..<20 { try recorder.record(Double.random(in: 0...1), "noise-\(property)") }
        try recorder.wait(second)
      }
    }
    try record(3600)
    try store.compact()
    let trip = Period(
      device: "ev", kind: .trip, start: BootTime(boot: boot, time: 0), end: BootTime(boot: boot, time: 60 * second), zone: "UTC")
    try store.store(trip)
    // Without free pages.
    try store.database.execute("VACUUM")
    try store.checkpoint()
    let pages = try store.database.number("PRAGMA page_count")
    #expect(try store.database.number("PRAGMA max_page_count = \(pages)") == pages)
    let end = recorder.now
    try record(1800)
    try store.compact()
    #expect(try store.reader.samples("noise-3", in: 0...400 * second).isEmpty)
    #expect(try store.reader.samples("noise-3", in: end...recorder.now - second).count == 1800)
    #expect(try store.reader.periods().map(\.isFrozen) == [true])
    #expect(try store.reader.check().damage == [])
  }

  @Test func `a full disk without old blocks is an error, and loses nothing`() throws {
    let store = try open()
    var recorder = TestRecorder(store, boot: try store.boot("a", offset: 0))
    try recorder.record(1)
    try recorder.wait(10 * second)
    _ = try store.database.number("PRAGMA max_page_count = 1")
    #expect {
      for _ in 0..<100 {
        for property in 0..<20 { try recorder.record(Double.random(in: 0...1), "speed-\(property)") }
        try recorder.wait(10 * second)
      }
    } throws: {
      ($0 as? StoreError)?.kind == .diskFull && "\($0)".contains("disk full; free some space")
    }
    #expect(try store.reader.samples("speed") == [.number(1, 0)])
  }
}
