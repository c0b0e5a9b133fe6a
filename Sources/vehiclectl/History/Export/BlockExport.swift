// A block file: a line that identifies the format, then one JSON object per line, each a block of samples in Base64 with its series. The
// smallest format; an import restores its samples exactly. Pure.

import Protocols
import SampleBlocks
import Varlink

/// A line of a block file: the parameters of Import, without the source.
struct BlockLine {
  var device: String
  var series: [HistoryContract.Series]
  /// The block in Base64.
  var block: String
  /// Whether recording continued without a gap since the previous block of this device in the file.
  var continues: Bool

  static let header = "{\"format\":\"vehicled-blocks\",\"version\":1}\n"

  var text: String {
    let series = series.map { one in
      JSON.members([
        "id": .int(one.id), "property": .string(one.property), "type": .string(one.type), "unit": one.unit.map(JSON.string),
      ])
    }
    return JSON.members([
      "device": .string(device), "continues": .bool(continues), "series": .array(series), "block": .string(block),
    ]).text + "\n"
  }
}

/// Collects the samples of one device into blocks of limited size and duration.
struct BlockAssembler {
  /// The maximum duration of a block in µs. Longer blocks compress better, but need more memory to read.
  private static let maxSpan = 600_000_000
  /// Keeps a call of Import below its limit of 1 MiB.
  private static let maxSamples = 20_000
  /// The reason in the sample that marks the start of a gap in the recording.
  static let notRecorded = "not recorded"

  private let device: String
  private var builder = BlockBuilder()
  private var usedSeries: [Int: HistoryContract.Series] = [:]
  private var start: Int?
  private var last = Int.min
  /// The end of the previous block, the earliest start of the next one. Samples before the start of a block are valid at its start.
  private var covered: Int
  /// Whether recording continued without a gap since the previous block.
  private var continues = false

  /// Creates blocks that start no earlier than `from`; nil: with the first sample.
  init(_ device: String, from: Int? = nil) { (self.device, covered) = (device, from ?? .min) }

  /// Adds a sample, which must not be earlier than the previous one. Returns a block if the sample completes one.
  mutating func append(_ sample: HistoryContract.Sample, of series: HistoryContract.Series) throws(BlockError) -> BlockLine? {
    if sample.value == nil, sample.reason == Self.notRecorded {
      let line = flush(until: sample.time)
      continues = false
      return line
    }
    var line: BlockLine?
    if let start, sample.time > last, builder.isFull || builder.count >= Self.maxSamples || sample.time - start > Self.maxSpan {
      line = flush(until: sample.time)
    }
    start = start ?? max(covered, sample.time)
    last = max(last, sample.time)
    usedSeries[series.id] = series
    let content = sample.value.map(Reading.Content.value) ?? .absent(sample.reason ?? "absent")
    try builder.append(content, series: series.id, at: Int64(sample.time))
    return line
  }

  /// Returns the block of the remaining samples; nil if there are none.
  mutating func flush() -> BlockLine? { flush(until: last) }

  private mutating func flush(until end: Int) -> BlockLine? {
    guard let start, !builder.isEmpty else { return nil }
    let end = max(start, end, last)
    let bytes = builder.build(from: Int64(start), to: Int64(end), layout: .columns)
    defer { (self.start, usedSeries, continues, covered) = (nil, [:], true, end) }
    return BlockLine(
      device: device, series: usedSeries.values.sorted { $0.id < $1.id }, block: Base64.encode(bytes), continues: continues)
  }
}

struct BlockExport: ExportFormat {
  private let series: [HistoryContract.Series]
  private var devices: [String: BlockAssembler] = [:]

  /// Creates blocks that start no earlier than `from`.
  init(_ series: [HistoryContract.Series], from: Int?) {
    self.series = series
    devices = Dictionary(series.map { ($0.device, BlockAssembler($0.device, from: from)) }, uniquingKeysWith: { first, _ in first })
  }

  func start() -> String { BlockLine.header }

  mutating func row(_ row: ExportRow) throws(Failure) -> String {
    var text = ""
    for (index, sample) in row.samples {
      do throws(BlockError) {
        text += try devices[series[index].device]?.append(sample, of: series[index])?.text ?? ""
      } catch {
        throw .other("cannot export \(series[index].reference): \(error); see: vehiclectl history check")
      }
    }
    return text
  }

  mutating func end() -> String {
    devices.keys.sorted().map { devices[$0]?.flush()?.text ?? "" }.joined()
  }
}
