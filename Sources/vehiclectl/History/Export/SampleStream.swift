// The recorded samples of several devices in order of time. Each device has its own connection, from which only the next reply is read, so
// memory use does not grow with the range.

import Protocols
import Varlink

/// The samples of one device.
final class SampleStream {
  private let client: Client
  private var pending: ArraySlice<HistoryContract.Sample> = []
  private var hasMore = true
  /// The earliest time of a sample (µs).
  private let earliest: Int
  /// The series of the samples, from the first reply.
  let series: [HistoryContract.Series]
  /// Descriptions of the blocks that could not be read.
  private(set) var damage: [String] = []
  /// The fraction that was received, 0 to 1.
  private(set) var progress = 0.0

  /// Requests the samples. Values that are valid at the start of the range get the time `earliest` if they are older.
  init(_ client: Client, _ parameters: HistoryContract.SamplesMethod.Parameters, earliest: Int? = nil) throws(Failure) {
    (self.client, self.earliest) = (client, earliest ?? .min)
    try client.begin(HistoryContract.SamplesMethod.self, parameters, more: true)
    let (first, continues) = try client.receiveReply(to: HistoryContract.SamplesMethod.self)
    series = first.series ?? []
    hasMore = continues
    take(first)
  }

  /// Returns the next sample without removing it; nil at the end.
  func peek() throws(Failure) -> HistoryContract.Sample? {
    while pending.isEmpty, hasMore {
      if Interrupt.received { throw .other("interrupted") }
      let (result, continues) = try client.receiveReply(to: HistoryContract.SamplesMethod.self)
      hasMore = continues
      take(result)
    }
    return pending.first
  }

  func removeFirst() { pending = pending.dropFirst() }

  /// Queues the samples of a reply by time: the service may order them by series.
  private func take(_ result: HistoryContract.SamplesMethod.Result) {
    damage += result.damage ?? []
    progress = result.progress ?? progress
    var samples = result.samples ?? []
    for index in samples.indices where samples[index].time < earliest { samples[index].time = earliest }
    let isOrdered = zip(samples, samples.dropFirst()).allSatisfy { $0.time <= $1.time }
    pending =
      (isOrdered ? samples : samples.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element))[
        ...]
  }
}

/// The samples of several devices at one time.
struct ExportRow {
  /// µs since the Unix epoch.
  var time: Int
  /// Each sample with the index of its series in `SampleMerge.series`.
  var samples: [(series: Int, sample: HistoryContract.Sample)] = []
}

/// Merges several streams into one.
final class SampleMerge {
  private let streams: [SampleStream]
  /// The series of all devices.
  let series: [HistoryContract.Series]
  /// For each stream, the indices in `series`, by the ID that the stream uses for the series.
  private let indices: [[Int: Int]]

  init(_ streams: [SampleStream]) {
    self.streams = streams
    var (all, indices): ([HistoryContract.Series], [[Int: Int]]) = ([], [])
    for stream in streams {
      indices.append(Dictionary(stream.series.enumerated().map { ($1.id, all.count + $0) }, uniquingKeysWith: { first, _ in first }))
      all += stream.series
    }
    (series, self.indices) = (all, indices)
  }

  var damage: [String] { streams.flatMap(\.damage) }

  /// The progress of the slowest stream, 0 to 1.
  var progress: Double { streams.map(\.progress).min() ?? 1 }

  /// Returns the samples at the next time; nil at the end.
  func next() throws(Failure) -> ExportRow? {
    var time: Int?
    for stream in streams {
      if let sample = try stream.peek() { time = min(time ?? .max, sample.time) }
    }
    guard let time else { return nil }
    var row = ExportRow(time: time)
    for (stream, indices) in zip(streams, indices) {
      while let sample = try stream.peek(), sample.time == time {
        if let index = indices[sample.series] { row.samples.append((index, sample)) }
        stream.removeFirst()
      }
    }
    return row
  }
}
