// Writes samples as blocks: to a file, or to a running vehicled-history.

import Glibc
import Peers
import Protocols
import SampleBlocks
import Varlink

struct BlockWriter {
  enum Destination {
    case file(String)
    /// The socket of vehicled-history. `source` identifies the values, so that a repeated import is recognized.
    case socket(String, source: String)
  }

  private enum Output {
    case file(BlockFile)
    case importer(HistoryImporter, source: String)
  }

  private let device: String
  private let output: Output
  private var assembler = BlockAssembler()
  private var series: [HistoryContract.Series] = []
  /// The number of samples in the blocks.
  private(set) var sampleCount = 0

  init(device: String, to destination: Destination) throws {
    self.device = device
    switch destination {
    case .file(let path): output = .file(try BlockFile(path))
    case .socket(let path, let source): output = .importer(try HistoryImporter(path), source: source)
    }
  }

  /// Adds a sample of a series, given by its index in `all`; `time` is in µs since the Unix epoch.
  mutating func append(_ content: Reading.Content, _ index: Int, of all: [PlannedRecording.Series], at time: Int64) throws {
    while series.count <= index {
      let next = all[series.count]
      series.append(
        HistoryContract.Series(id: series.count, device: device, property: next.property, type: next.type.rawValue, unit: next.unit))
    }
    if let block = try assembler.append(content, series: index, at: time) { try write(block) }
  }

  /// Starts a gap in the recording at this time.
  mutating func interrupt(at time: Int64) throws {
    if let block = assembler.interrupt(at: time) { try write(block) }
  }

  /// Writes the remaining samples. The last values were valid until this time.
  mutating func finish(at time: Int64) throws {
    if let block = assembler.flush(until: time) { try write(block) }
    if case .importer(let importer, _) = output { try importer.finish() }
  }

  private mutating func write(_ block: BlockAssembler.Assembled) throws {
    sampleCount += block.count
    let used = series.filter { block.series.contains($0.id) }
    let text = Base64.encode(block.bytes)
    switch output {
    case .file(let file): try file.write(BlockLine(device: device, series: used, block: text, continues: block.continues).text)
    case .importer(let importer, let source):
      try importer.send(
        HistoryContract.ImportMethod.Parameters(
          device: device, source: source, series: used, block: text, continues: block.continues))
    }
  }
}

/// A new file of blocks.
final class BlockFile {
  private let descriptor: CInt
  private let path: String

  init(_ path: String) throws(SimulatorError) {
    self.path = path
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw SimulatorError("cannot create \(path)", errno: errno) }
    try write(BlockLine.header)
  }

  deinit { close(descriptor) }

  func write(_ text: String) throws(SimulatorError) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 || errno == EINTR else { throw SimulatorError("cannot write \(path)", errno: errno) }
      rest = rest.dropFirst(max(0, count))
    }
  }
}
