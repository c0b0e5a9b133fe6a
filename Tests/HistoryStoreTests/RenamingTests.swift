// Renaming: the values of a device that was renamed are joined with those recorded since, unless they overlap.

import Foundation
import HistoryStore
import Protocols
import Testing

@Suite("Renaming in the history") struct RenamingTests {
  private let directory = TestDirectory()

  /// Records 600 s of the device `ev`, and then 300 s, after a pause of 100 s, under the name `golf`, with one series more.
  private func store(_ device: String = "ev", then other: String = "golf") throws -> HistoryStore {
    let store = try HistoryStore(directory: directory.path)
    var recorder = TestRecorder(store, device: device, boot: try store.boot("a", offset: 0))
    for index in 0..<600 {
      try recorder.record(Double(index))
      try recorder.wait(second)
    }
    var later = TestRecorder(store, device: other, boot: recorder.boot, at: 700 * second)
    for index in 700..<1000 {
      try later.record(Double(index))
      if index == 800 { try later.record(.value(.string("park")), "gear", type: .string, unit: nil) }
      try later.wait(second)
    }
    return store
  }

  @Test func `values of the same time in other boots overlap as well`() throws {
    let store = try HistoryStore(directory: directory.path)
    for (device, boot, offset, time) in [("ev", "a", 0, 0), ("golf", "b", 1000, -700), ("old", "c", 5000, 0)]
      as [(String, String, Int64, Int64)]
    {
      var recorder = TestRecorder(store, device: device, boot: try store.boot(boot, offset: offset * second), at: time * second)
      try recorder.record(1)
      try recorder.wait(600 * second)
    }
    // 0 to 600 s, 300 to 900 s, 5000 to 5600 s.
    #expect { try store.rename("ev", to: "golf") } throws: { "\($0)".contains("ev and golf both have values at 1970-01-01T00:05:00Z") }
    #expect { try store.rename("golf", to: "ev") } throws: { "\($0)".contains("both have values at 1970-01-01T00:05:00Z") }
    try store.rename("golf", to: "old")
    #expect(try store.reader.devices() == ["ev", "old"])
  }

  @Test(arguments: [false, true]) func `values before and after the change of the name are joined`(isCompacted: Bool) throws {
    let store = try store()
    if isCompacted { try store.compact() }
    let (before, after) = (try store.reader.samples("speed"), try store.reader.samples("speed", of: "golf"))
    let period = Period(
      device: "ev", kind: .trip, start: BootTime(boot: 1, time: 0), end: BootTime(boot: 1, time: 600 * second), zone: "UTC")
    try store.store(period)
    try store.rename("ev", to: "golf")
    #expect(try store.reader.devices() == ["golf"])
    #expect(try store.reader.series().map(\.key.property).sorted() == ["gear", "speed"])
    #expect(try store.reader.samples("speed", of: "golf") == before + [.gap(600 * second)] + after)
    #expect(try store.reader.samples("gear", of: "golf").count == 1)
    #expect(try store.reader.periods(of: "golf").map(\.kind) == [.trip])
    let plot = try #require(try store.reader.plot("speed", of: "golf", in: 0...(1200 * second - 1), points: 10))
    #expect(plot.points[0]?.minimum == 0 && plot.points[8]?.maximum == 999 && plot.points[9] == nil)
    #expect(try store.reader.check().damage == [])
    // Later values continue the joined series.
    #expect(try store.series(SeriesKey(device: "golf", property: "speed", type: .float, unit: "km/h")) <= 3)
  }

  @Test func `a device can get the name of a longer history`() throws {
    let store = try store("golf", then: "ev")
    try store.rename("ev", to: "golf")
    #expect(try store.reader.devices() == ["golf"] && store.reader.samples("speed", of: "golf").count == 901)
  }

  @Test func `devices with values at the same time cannot be joined`() throws {
    let store = try store()
    var other = TestRecorder(store, device: "board", boot: 1, at: 800 * second)
    try other.record(5)
    try other.wait(60 * second)
    #expect { try store.rename("board", to: "golf") } throws: {
      "\($0)".hasPrefix("cannot rename board: board and golf both have values at 1970-01-01T00:13:20")
    }
    #expect(try store.reader.devices() == ["board", "ev", "golf"] && store.reader.samples("speed", of: "board").count == 1)
  }
}
