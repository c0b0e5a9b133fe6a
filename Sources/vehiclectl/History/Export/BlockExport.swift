// A file of blocks: one JSON object per line, each a block of samples in Base64 with its series, after a line that identifies the format. The
// smallest format, and the one that an import restores exactly. Pure.

import Protocols
import SampleBlocks
import Varlink

/// A line of a file of blocks: the parameters of Import, without the source.
struct BlockLine {
  var device: String
  var series: [HistoryContract.Series]
  /// In Base64.
  var block: String
  /// Whether recording went on since the previous block of this device in the file.
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

/// Collects the samples of one device, and makes a block of them when it is large or long enough.
struct BlockAssembler {
  /// In µs; longer blocks are smaller in total, but need more memory to read.
  private static let maxSpan = 600_000_000
  /// The calls of Import are limited to 1 MiB.
  private static let maxSamples = 20_000
  /// The reason of samples from which on nothing was recorded.
  static let notRecorded = "not recorded"

  private let device: String
  private var builder = BlockBuilder()
  private var used: [Int: HistoryContract.Series] = [:]
  private var start: Int?
  private var last = Int.min
  /// The end of the last block: the next one starts there at the earliest. Samples before its start are valid at its start.
  private var covered: Int
  /// Whether recording went on since the last block.
  private var continues = false

  /// Creates blocks that start at `from` at the earliest; nil: with the first sample.
  init(_ device: String, from: Int? = nil) { (self.device, covered) = (device, from ?? .min) }

  /// Adds a sample that is not earlier than the one before. Returns a block that is complete.
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
    used[series.id] = series
    let content = sample.value.map(Reading.Content.value) ?? .absent(sample.reason ?? "absent")
    try builder.append(content, series: series.id, at: Int64(sample.time))
    return line
  }

  /// The block of what is left.
  mutating func flush() -> BlockLine? { flush(until: last) }

  private mutating func flush(until end: Int) -> BlockLine? {
    guard let start, !builder.isEmpty else { return nil }
    let end = max(start, end, last)
    let bytes = builder.build(from: Int64(start), to: Int64(end), layout: .columns)
    defer { (self.start, used, continues, covered) = (nil, [:], true, end) }
    return BlockLine(
      device: device, series: used.values.sorted { $0.id < $1.id }, block: Base64.encode(bytes), continues: continues)
  }
}

struct BlockExport: ExportFormat {
  private let series: [HistoryContract.Series]
  private var devices: [String: BlockAssembler] = [:]

  /// Creates blocks from a time on.
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
