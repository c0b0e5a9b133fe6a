// The table of `watch --frames`: rates, counts, and bits that changed. Logs of can-utils.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct FrameTableTests {
  private func frame(_ text: String) throws -> CANFrame { try #require(CANFrame(candump: Array(text.utf8))) }

  @Test func `frames are counted by identifier, with their rate`() throws {
    var table = FrameTable()
    for index in 0..<50 { table.add(try frame("3E9#0102"), at: Double(index) * 0.02) }
    table.add(try frame("000003E9#0102"), at: 1)
    table.add(try frame("100#"), at: 1)
    #expect(table.total == 52 && table.rows.map(\.identifier.text) == ["100", "3E9", "000003E9"])
    let row = table.rows[1]
    #expect(row.count == 50 && abs((row.rate ?? 0) - 50) < 0.5 && table.rows[0].rate == nil)
    table.clear()
    #expect(table.total == 0 && table.rows.isEmpty)
  }

  @Test func `bits that changed are known with the time of the change`() throws {
    var table = FrameTable()
    table.add(try frame("3E9#0100"), at: 1)
    table.add(try frame("3E9#0180"), at: 2)
    table.add(try frame("3E9#0180"), at: 3)
    let row = table.rows[0]
    #expect(row.hasChanged(bit: 8, since: 2) && !row.hasChanged(bit: 8, since: 2.5) && !row.hasChanged(bit: 7, since: 0))
    #expect(row.hasChanged(byte: 1, since: 0) && !row.hasChanged(byte: 0, since: 0))
  }

  @Test func `the number of identifiers is bounded`() throws {
    var table = FrameTable()
    for number in 0..<10_000 as Range<UInt32> { table.add(CANFrame(CANIdentifier(number: number, is29Bit: true), []), at: 0) }
    #expect(table.rows.count == 4096 && table.total == 10_000)
  }

  @Test func `the times of a log count from the start of the recording`() throws {
    let header = Recording.Header(
      kind: "obd", device: "ev", date: "2026-01-02T00:00:00Z", start: 1_767_225_600_000_000, frames: Recording.slcan)
    var log = try #require(FrameLog(Recording.text(header), device: "ev", isWanted: true))
    #expect(try log.lines(of: Recording.text(header)).isEmpty)
    let line = Recording.text(86_400_000_001_000, link: "main", .sent, bytes: Array("t7DF10D\r".utf8))
    #expect(try log.lines(of: line) == ["(1767312000.000001) ev 7DF#0D T"])
  }
}
