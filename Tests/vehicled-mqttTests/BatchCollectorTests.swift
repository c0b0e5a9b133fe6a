// Batches for a fleet: what they contain, and that they follow each other without holes.

import Observations
import Protocols
import SampleBlocks
import Testing

@testable import vehicled_mqtt

@Suite("Batches of a fleet") struct BatchCollectorTests {
  private static let second: Int64 = 1_000_000
  private let clock = ClockReading(boot: 100 * second, wall: 1_700_000_100 * second, isSynchronised: true)

  private func observation(_ property: String, _ content: Reading.Content, at seconds: Int64, unit: String? = nil) -> Observation {
    Observation(device: "ev", property: property, unit: unit, time: seconds * Self.second, content: content)
  }

  private func cut(_ collector: inout BatchCollector, at seconds: Int64, sequence: Int = 1) throws -> (header: JSON, block: Block)? {
    let identity = BatchCollector.Identity(vehicle: "van-17", session: "00c0ffee", sequence: sequence)
    guard let bytes = collector.cut(at: seconds * Self.second, clock, identity).first else { return nil }
    let (header, block) = try Batch.decode(bytes)
    return (try #require(JSON(String(decoding: header, as: UTF8.self))), block)
  }

  @Test func `a batch has the identity, the series, and wall-clock times`() throws {
    var collector = BatchCollector(device: "ev")
    #expect(try cut(&collector, at: 30) == nil)
    collector.append(observation("speed", .value(.float(50.5)), at: 10, unit: "km/h"))
    collector.append(observation("ready", .value(.bool(true)), at: 11))
    collector.append(observation("speed", .absent("stale"), at: 20))
    collector.append(observation("range", .absent("unsupported"), at: 21))
    let cut1 = try cut(&collector, at: 30)
    let (header, block) = try #require(cut1)
    #expect(
      header.text == #"{"vehicle":"van-17","device":"ev","session":"00c0ffee","sequence":1,"synchronised":true,"#
        + #""series":[[1,"speed","float","km/h"],[2,"ready","bool",null]]}"#)
    let wall = 1_700_000_000 * Self.second
    #expect(block.start == wall + 10 * Self.second && block.end == wall + 30 * Self.second)
    #expect(
      try block.column(1)?.samples == [
        Sample(time: wall + 10 * Self.second, content: .value(.float(50.5))),
        Sample(time: wall + 20 * Self.second, content: .absent("stale")),
      ])
    #expect(try block.column(2)?.count == 1)
  }

  @Test func `the next batch covers the time from the end of the last one`() throws {
    var collector = BatchCollector(device: "ev")
    collector.append(observation("speed", .value(.int(5)), at: 10))
    _ = try cut(&collector, at: 30)
    #expect(collector.isEmpty)
    collector.append(observation("speed", .value(.int(6)), at: 55))
    let cut2 = try cut(&collector, at: 60, sequence: 2)
    let next = try #require(cut2)
    #expect(next.block.start == 1_700_000_030 * Self.second && next.header["sequence"] == .int(2))
  }

  @Test func `what is too large for the broker becomes several batches, which repeat the values at their start`() throws {
    var collector = BatchCollector(device: "ev")
    collector.append(observation("gear", .value(.string("drive")), at: 1))
    for second in 1...200 {
      collector.append(observation("speed", .value(.float(Double(second * 7919 % 100_003) / 7)), at: Int64(second), unit: "km/h"))
    }
    let identity = BatchCollector.Identity(vehicle: "van-17", session: "00c0ffee", sequence: 5)
    let batches = try collector.cut(at: 300 * Self.second, clock, identity, maxSize: 600).map { try Batch.decode($0) }
    #expect(batches.count > 3)
    let headers = try batches.map { try #require(JSON(String(decoding: $0.0, as: UTF8.self))) }
    #expect(headers.map { $0["sequence"] } == (5..<(5 + batches.count)).map { .int($0) })
    var speeds: [Sample] = []
    for (index, (_, block)) in batches.enumerated() {
      #expect(index == 0 || block.start == batches[index - 1].1.end)
      #expect(try block.column(1)?.samples.first?.content == .value(.string("drive")))
      let samples = try block.column(2)?.samples ?? []
      #expect(index == 0 || samples.first?.content == speeds.last?.content)
      speeds += samples.filter { $0.time >= block.start }
    }
    #expect(speeds.count == 200 && batches.last?.1.end == 1_700_000_300 * Self.second)
    // One moment cannot be divided.
    collector.append(observation("gear", .value(.string("park")), at: 301))
    #expect(collector.cut(at: 302 * Self.second, clock, identity, maxSize: 1).count == 1)
  }

  @Test func `times are rounded to 10 ms, and an absence at the same time as a value wins`() throws {
    var collector = BatchCollector(device: "ev")
    for (time, content) in [(10_123_456, Reading.Content.value(.int(1))), (20_001_000, .value(.int(2))), (20_001_001, .absent("stale"))] {
      collector.append(Observation(device: "ev", property: "speed", unit: nil, time: Int64(time), content: content))
    }
    let cut1 = try cut(&collector, at: 30)
    let block = try #require(cut1).block
    let wall = 1_700_000_000 * Self.second
    #expect(
      try block.column(1)?.samples == [
        Sample(time: wall + 10_120_000, content: .value(.int(1))), Sample(time: wall + 20_000_000, content: .absent("stale")),
      ])
  }

  @Test func `a changed unit is a new series`() throws {
    var collector = BatchCollector(device: "ev")
    collector.append(observation("power", .value(.float(1)), at: 1, unit: "kW"))
    collector.append(observation("power", .value(.float(1000)), at: 2, unit: "W"))
    let cut1 = try cut(&collector, at: 3)
    let (header, block) = try #require(cut1)
    guard case .array(let series)? = header["series"] else { throw BlockError("series", "none") }
    #expect(series.map(\.text) == [#"[1,"power","float","kW"]"#, #"[2,"power","float","W"]"#])
    #expect(try block.column(1)?.samples.last?.content == .absent("its type or unit has changed"))
  }
}
