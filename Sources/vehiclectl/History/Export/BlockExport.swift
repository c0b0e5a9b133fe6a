// The block format of an export: each line is a block, as `BlockLine` describes. An import restores its samples exactly. No I/O.

import Protocols
import SampleBlocks
import Varlink

/// Collects the samples of one device into the lines of a block file.
struct BlockLines {
  /// The reason in the sample that marks the start of a gap in the recording.
  static let notRecorded = "not recorded"

  private let device: String
  private var assembler: BlockAssembler
  private var series: [Int: HistoryContract.Series] = [:]

  /// Creates blocks that start no earlier than `from` or, if it is nil, with the first sample.
  init(_ device: String, from: Int? = nil) { (self.device, assembler) = (device, BlockAssembler(from: from.map { Int64($0) })) }

  /// Adds a sample, which must not be earlier than the previous one. Returns a block if the sample completes one.
  mutating func append(_ sample: HistoryContract.Sample, of source: HistoryContract.Series) throws(BlockError) -> BlockLine? {
    if sample.value == nil, sample.reason == Self.notRecorded { return line(assembler.interrupt(at: Int64(sample.time))) }
    series[source.id] = source
    let content = sample.value.map(Reading.Content.value) ?? .absent(sample.reason ?? "absent")
    return line(try assembler.append(content, series: source.id, at: Int64(sample.time)))
  }

  /// Returns the block of the remaining samples; nil if there are none.
  mutating func flush() -> BlockLine? { line(assembler.flush()) }

  private func line(_ block: BlockAssembler.Assembled?) -> BlockLine? {
    block.map { block in
      BlockLine(
        device: device, series: block.series.sorted().compactMap { series[$0] }, block: Base64.encode(block.bytes),
        continues: block.continues)
    }
  }
}

struct BlockExport: ExportFormat {
  private let series: [HistoryContract.Series]
  private var devices: [String: BlockLines] = [:]

  /// Creates blocks that start no earlier than `from`.
  init(_ series: [HistoryContract.Series], from: Int?) {
    self.series = series
    devices = Dictionary(series.map { ($0.device, BlockLines($0.device, from: from)) }, uniquingKeysWith: { first, _ in first })
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
