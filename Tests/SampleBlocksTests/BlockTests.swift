// Blocks of samples: every type of value is read as it was written.

import Protocols
import Testing

@testable import SampleBlocks

@Suite("Blocks of samples") struct BlockTests {
  static let layouts: [BlockBuilder.Layout] = [.whole, .columns]

  /// Makes a block of samples of several series, and returns its columns.
  private func roundTrip(
    _ samples: [(series: Int, sample: Sample)], _ layout: BlockBuilder.Layout = .columns
  ) throws -> [Int: [Sample]] {
    var builder = BlockBuilder()
    for (series, sample) in samples { try builder.append(sample.content, series: series, at: sample.time) }
    let block = try Block(builder.build(from: 0, to: 1_000_000, layout: layout))
    return Dictionary(uniqueKeysWithValues: try block.columns().map { ($0.series, $0.samples) })
  }

  @Test(arguments: layouts) func `every type of value, and absence with its reason`(layout: BlockBuilder.Layout) throws {
    let floats: [Double] = [0.1 + 0.2, .pi, -0.0, .infinity, 1e300]
    let contents: [Int: [Reading.Content]] = [
      1: [.value(.bool(true)), .absent("stale"), .value(.bool(false)), .absent("link down"), .absent("stale")],
      2: [0, -5, .max, .min, 7].map { .value(.int($0)) },
      30: [.value(.float(22.7)), .value(.float(-0.1)), .absent(""), .value(.float(734.8)), .value(.float(0))],
      31: floats.map { .value(.float($0)) },
      400: [.value(.string("drive")), .value(.string("drive")), .value(.string("")), .value(.string("Zoë")), .absent("a")],
      5: [.value(.list(["3.84", "3.8", "-0.02"])), .value(.list(["3.82", "4", "0"])), .absent("a"), .absent("a"), .absent("b")],
      6: [.value(.list([])), .value(.list(["P0420", "x"])), .value(.list(["3.80"])), .absent("n"), .value(.list([""]))],
      7: Array(repeating: .absent("not reported by this car"), count: 5),
    ]
    let expected = contents.mapValues { $0.enumerated().map { Sample(time: Int64($0) * 50_000 + 3, content: $1) } }
    let found = try roundTrip(expected.flatMap { series, samples in samples.map { (series, $0) } }, layout)
    #expect(Set(found.keys) == Set(expected.keys))
    for (series, samples) in expected { #expect(found[series] == samples) }
    guard case .value(.float(let zero)) = found[31]?[2].content else { throw BlockError("series 31", "no number") }
    #expect(zero.sign == .minus)
  }

  @Test(arguments: layouts) func `series with samples at different times`(layout: BlockBuilder.Layout) throws {
    var samples: [(series: Int, sample: Sample)] = []
    var random = SystemRandomNumberGenerator()
    var time: Int64 = -40
    for _ in 0..<2000 {
      time += Int64.random(in: 1...2_000_000, using: &random)
      for series in 0..<9 where Int.random(in: 0...series, using: &random) == 0 {
        samples.append((series, Sample(time: time, content: .value(.float(Double(Int.random(in: -999...999, using: &random)) / 100)))))
      }
    }
    let found = try roundTrip(samples.shuffled(), layout)
    for series in 0..<9 { #expect(found[series] ?? [] == samples.filter { $0.series == series }.map(\.sample)) }
  }

  @Test func `one column is read without the others`() throws {
    var builder = BlockBuilder()
    for index in 0..<500 {
      try builder.append(.value(.int(index * index)), series: 1, at: Int64(index))
      try builder.append(.value(.string("text \(index)")), series: 2, at: Int64(index))
    }
    var bytes = builder.build(from: 0, to: 500, layout: .columns)
    #expect(builder.isEmpty)
    bytes[bytes.count - 9] ^= 0xFF
    let block = try Block(bytes)
    #expect(block.series == [1, 2])
    #expect(try block.column(1)?.samples.map(\.content) == (0..<500).map { .value(.int($0 * $0)) })
    #expect(try block.column(1)?.number(20) == 400)
    #expect(try block.column(3) == nil)
    #expect { try block.column(2) } throws: { "\($0)" == "column of series 2: checksum mismatch" }
  }

  @Test func `the later of two samples with the same time, and values before the start`() throws {
    var builder = BlockBuilder()
    try builder.append(.value(.int(1)), series: 1, at: 5)
    try builder.append(.value(.int(2)), series: 1, at: 9)
    try builder.append(.value(.int(3)), series: 1, at: 5)
    let block = try Block(builder.build(from: 8, to: 10, layout: .whole))
    #expect((block.start, block.end, block.rows) == (8, 10, 2))
    #expect(try block.column(1)?.samples == [Sample(time: 5, content: .value(.int(3))), Sample(time: 9, content: .value(.int(2)))])
  }

  @Test func `a sample that replaces another one does not count`() throws {
    var assembler = BlockAssembler()
    for (value, time) in [(1, 5), (2, 5), (3, 9)] {
      let block = try assembler.append(.value(.int(value)), series: 1, at: Int64(time))
      #expect(block?.bytes == nil)
    }
    let block = try assembler.append(.value(.bool(true)), series: 2, at: 9)
    #expect(block?.bytes == nil)
    let rest = assembler.flush()
    let assembled = try #require(rest)
    let columns = try Block(assembled.bytes).columns()
    #expect(
      columns.map(\.samples) == [
        [Sample(time: 5, content: .value(.int(2))), Sample(time: 9, content: .value(.int(3)))],
        [Sample(time: 9, content: .value(.bool(true)))],
      ])
    #expect(assembled.count == 3)
  }

  @Test func `times that end in zeros take one byte each`() throws {
    for unit: Int64 in [1, 10, 10_000, 1_000_000_000, 1_000_000_000_000] {
      var builder = BlockBuilder()
      let times = [-7, 0, 3, 4, 11].map { $0 * unit }
      for time in times { try builder.append(.value(.bool(true)), series: 1, at: time) }
      let bytes = builder.build(from: -8 * unit, to: 12 * unit, layout: .columns)
      let block = try Block(bytes)
      #expect(try block.column(1)?.times == times && block.start == -8 * unit && block.end == 12 * unit)
      if unit <= 1_000_000_000 { #expect(bytes.count < 90) }
    }
  }

  @Test func `values of two types in one series are an error`() throws {
    var builder = BlockBuilder()
    try builder.append(.value(.int(1)), series: 4, at: 0)
    #expect { try builder.append(.value(.float(1)), series: 4, at: 1) } throws: {
      "\($0)" == "series 4: a value of type float, the others are of type int"
    }
    #expect { try builder.append(.value(.int(1)), series: -1, at: 1) } throws: { "\($0)" == "series -1: not a valid series ID" }
    #expect(builder.count == 1)
  }

  @Test func `an empty block`() throws {
    for layout in Self.layouts {
      var builder = BlockBuilder()
      let block = try Block(builder.build(from: 3, to: 4, layout: layout))
      #expect(block.series.isEmpty)
      #expect(try block.columns().isEmpty)
    }
  }

  @Test func `constant values take almost no space`() throws {
    var builder = BlockBuilder()
    for index in 0..<12_000 {
      for series in 0..<10 { try builder.append(.value(.float(734.8)), series: series, at: Int64(index) * 50_000) }
    }
    let bytes = builder.build(from: 0, to: 600_000_000, layout: .columns)
    #expect(bytes.count < 1500)
  }

  @Test func `decimal fractions as integers`() {
    #expect(DecimalScale.integers([22.7, -3, 0.05])?.decimals == 2)
    #expect(DecimalScale.integers([22.7, -3, 0.05])?.integers == [2270, -300, 5])
    #expect(DecimalScale.integers([0.1 + 0.2]) == nil)
    #expect(DecimalScale.integers([-0.0]) == nil)
    #expect(DecimalScale.integers([.nan]) == nil)
    for text in ["0", "-0.05", "3.84", "10", "100.001", "-7"] {
      let number = DecimalScale.parse(text)
      #expect(number.map { DecimalScale.text($0.integer, $0.decimals) } == text)
    }
    for text in ["", "-", ".", "3.80", "03", "-0", "1.", ".5", "1e3", "1.2.3", "12345678901234567890", "٣", "00", "-00.5", "1-", "0.0"] {
      #expect(DecimalScale.parse(text) == nil, "\(text)")
    }
  }

  @Test func `CRC-32C of RFC 3720`() {
    #expect(crc32c(Array("123456789".utf8)[...]) == 0xE306_9283)
    #expect(crc32c([UInt8](repeating: 0, count: 32)[...]) == 0x8A91_36AA)
    #expect(crc32c(Array(0..<32)[...]) == 0x46DD_794E)
  }
}
