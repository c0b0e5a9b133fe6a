// Reads a file written by `history export`, and returns blocks: a block file contains them; the samples of CSV and JSON lines are collected
// into blocks. The caller reads a file twice, first to find mistakes, then to import it, so that nothing is imported from a file with a
// mistake.

import Protocols
import SampleBlocks
import Varlink

/// A sample from a file, with its series.
struct ImportedSample {
  var device: String
  var property: String
  var type: ValueType
  var unit: String?
  var time: Int
  var content: Reading.Content
}

/// A format that consists of samples.
protocol SampleFormat {
  /// Returns the samples of the next line or record; nil at the end.
  mutating func next(_ file: ImportFile) throws(Failure) -> [ImportedSample]?
}

struct ImportReader {
  enum Format { case csv, ndjson, blocks }

  private let path: String
  private let known: [HistoryContract.Series]
  let format: Format

  /// Detects the format of a file. `known` are the recorded series; they determine the type of a value if the file does not.
  init(_ path: String, known: [HistoryContract.Series]) throws(Failure) {
    (self.path, self.known) = (path, known)
    let first = String(decoding: try ImportFile(path).nextLine() ?? [], as: UTF8.self)
    if first + "\n" == BlockLine.header {
      format = .blocks
    } else if first.hasPrefix("{") {
      format = .ndjson
    } else if first.hasPrefix("time,") || first.hasPrefix("time_us,") {
      format = .csv
    } else {
      throw .usage("cannot import \(path): not a file written by \"history export\" as blocks, csv or ndjson; export it again")
    }
  }

  /// Reads the file once, and passes each block to the closure. Returns a string that identifies the contents.
  @discardableResult
  func blocks(_ body: (BlockLine, _ progress: Double) throws -> Void) throws -> String {
    let file = try ImportFile(path)
    switch format {
    case .blocks: try readBlocks(file, body)
    case .ndjson: try readSamples(file, NDJSONFormat(known), body)
    case .csv: try readSamples(file, try CSVFormat(file, types: try CSVTypes(path, known)), body)
    }
    return file.source
  }

  private func readBlocks(_ file: ImportFile, _ body: (BlockLine, Double) throws -> Void) throws {
    _ = try file.nextLine()
    while let bytes = try file.nextLine() {
      guard let json = JSON(String(decoding: bytes, as: UTF8.self)), let line = BlockLine(json) else {
        throw file.failure("not a line of a block file")
      }
      do throws(BlockError) {
        guard let bytes = Base64.decode(line.block) else { throw BlockError("block", "not Base64") }
        _ = try Block(bytes).columns()
      } catch {
        throw file.failure("the block is damaged: \(error)")
      }
      try body(line, file.progress)
    }
  }

  /// Throws if the history would reject the sample. Without this check, the part of the file before it would already be imported.
  private func check(_ sample: ImportedSample, _ file: ImportFile) throws(Failure) {
    guard isDeviceName(sample.device) else {
      throw file.failure(
        "invalid device name \"\(sample.device.prefix(40))\": use at most 32 lower-case letters, digits and dashes, beginning with a letter"
      )
    }
    guard sample.time.magnitude < 1 << 52 else {
      throw file.failure("the time \(sample.time) is out of range: use microseconds since the Unix epoch")
    }
    guard (1...64).contains(sample.property.utf8.count), sample.unit?.utf8.count ?? 0 <= 32 else {
      throw file.failure("the property has more than 64 bytes, or the unit more than 32")
    }
  }

  private func readSamples(_ file: ImportFile, _ format: any SampleFormat, _ body: (BlockLine, Double) throws -> Void) throws {
    struct Device {
      var lines: BlockLines
      var series: [HistoryContract.Series] = []
      var last = Int.min
    }
    var format = format
    var devices: [String: Device] = [:]
    while let samples = try format.next(file) {
      for sample in samples {
        try check(sample, file)
        var device = devices[sample.device] ?? Device(lines: BlockLines(sample.device))
        guard sample.time >= device.last else {
          throw file.failure("the time is before that of an earlier line for \(sample.device): sort the file by time")
        }
        device.last = sample.time
        let known = device.series.first { $0.property == sample.property && $0.type == sample.type.rawValue && $0.unit == sample.unit }
        let series =
          known
          ?? HistoryContract.Series(
            id: device.series.count + 1, device: sample.device, property: sample.property, type: sample.type.rawValue, unit: sample.unit)
        if known == nil { device.series.append(series) }
        let value: Value? = if case .value(let value) = sample.content { value } else { nil }
        let reason: String? = if case .absent(let reason) = sample.content { reason } else { nil }
        let line: BlockLine?
        do throws(BlockError) {
          line = try device.lines.append(.init(series: series.id, time: sample.time, value: value, reason: reason), of: series)
        } catch {
          throw file.failure("\(error)")
        }
        devices[sample.device] = device
        if let line { try body(line, file.progress) }
      }
    }
    for name in devices.keys.sorted() {
      if let line = devices[name]?.lines.flush() { try body(line, 1) }
    }
  }
}
