// Periods: stored, found by device, kind and time, and replaced without changing their IDs.

import HistoryStore
import Protocols
import SQLite
import Testing

@Suite("Periods") struct PeriodTests {
  private let directory = TestDirectory()

  private func period(_ kind: Period.Kind = .trip, _ boot: Int, _ start: Int64, _ end: Int64) -> Period {
    Period(
      device: "ev", kind: kind, start: BootTime(boot: boot, time: start * second), end: BootTime(boot: boot, time: end * second),
      zone: "Europe/Berlin")
  }

  @Test func `every field is stored, and an open period is updated`() throws {
    let store = try HistoryStore(directory: directory.path)
    let boots = [try store.boot("a", offset: 0), try store.boot("b", offset: 1000 * second)]
    _ = try store.series(SeriesKey(device: "ev", property: "speed", type: .float))
    var trip = period(.trip, boots[0], 10, 20)
    trip.isOpen = true
    trip.id = try store.store(trip)
    #expect(try store.reader.period(trip.id) == trip)
    trip.end = BootTime(boot: boots[1], time: 5 * second)
    trip.isOpen = false
    (trip.summary, trip.summaryStart, trip.details) = (#"{"topSpeed":93}"#, 10 * second, #"{"pauses":[]}"#)
    #expect(try store.store(trip) == trip.id)
    #expect(try store.reader.period(trip.id) == trip)
    // A list has no details.
    trip.details = "{}"
    #expect(try store.reader.periods(of: "ev", kind: .trip, in: 1005 * second...2000 * second) == [trip])
    #expect(try store.reader.periods(in: 1006 * second...2000 * second) == [])
    #expect(try store.reader.periods(kind: .charge) == [])
    #expect(try store.reader.period(99) == nil)
  }

  @Test func `periods are read in parts, and removed ones are omitted`() throws {
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("a", offset: 0)
    _ = try store.series(SeriesKey(device: "ev", property: "speed", type: .float))
    for start in 0..<5 { try store.store(period(.trip, boot, Int64(start) * 100, Int64(start) * 100 + 50)) }
    let ids = try store.reader.periodIDs(of: "ev", kind: .trip, in: .min ... .max, limit: 4)
    #expect(ids == [2, 3, 4, 5])
    #expect(try store.reader.periodIDs(of: "other", kind: nil, in: .min ... .max, limit: 4) == [])
    try store.removePeriod(3)
    var read: [Int] = []
    let count = try store.reader.readPeriods(ids[...]) { (row) throws(StoreError) in
      read.append(row.id)
      return read.count < 2
    }
    #expect(read == [2, 4] && count == 3)
    #expect(try store.reader.readPeriods(ids.dropFirst(count)) { (row) throws(StoreError) in row.id == 5 } == 1)
  }

  @Test func `periods that are computed again keep their IDs`() throws {
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("a", offset: 0)
    _ = try store.series(SeriesKey(device: "ev", property: "speed", type: .float))
    let all: ClosedRange<Int64> = 0 ... .max
    let first = try store.replacePeriods(
      of: "ev", in: all, with: [period(.trip, boot, 0, 100), period(.parking, boot, 100, 200), period(.trip, boot, 200, 300)])
    #expect(first.map(\.id) == [3, 2, 1])
    // The first trip is split in two; its first part keeps the ID. The last one moves, the parked period is gone.
    let second = try store.replacePeriods(
      of: "ev", in: all, with: [period(.trip, boot, 0, 30), period(.trip, boot, 40, 100), period(.trip, boot, 210, 290)])
    #expect(second.map(\.id) == [3, 4, 1])
    // A frozen one is neither replaced nor deleted.
    var frozen = try #require(second.last)
    frozen.isFrozen = true
    try store.store(frozen)
    let third = try store.replacePeriods(of: "ev", in: all, with: [period(.trip, boot, 5, 25), period(.charge, boot, 5, 25)])
    #expect(third.map(\.id) == [5, 1])
    #expect(third.last == frozen)
  }
}
