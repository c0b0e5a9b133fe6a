// The methods that read values: Status, Series, Samples, Plot.

import HistoryStore
import Protocols
import ServiceRuntime
import Varlink

extension HistoryServer {
  var readMethods: [ServerMethod] {
    [
      ServerMethod(HistoryContract.StatusMethod.self, right: .observe) { [unowned self] in status($0) },
      ServerMethod(HistoryContract.SeriesMethod.self, right: .observe) { [unowned self] in series($0) },
      ServerMethod(HistoryContract.SamplesMethod.self, right: .observe, requiresMore: true) { [unowned self] in try samples($0) },
      ServerMethod(HistoryContract.PlotMethod.self, right: .observe) { [unowned self] in try plot($0) },
    ]
  }

  private func status(_ call: MethodCall<HistoryContract.StatusMethod>) {
    let (failure, dropped) = state()
    read(call) { [limit] reader in
      let span = try reader.span()
      return HistoryContract.StatusMethod.Result(
        recording: failure == nil, reason: failure, size: try reader.size(), limit: limit, first: span.map { Int($0.lowerBound) },
        last: span.map { Int($0.upperBound) }, devices: try reader.devices(), dropped: dropped)
    }
  }

  private func series(_ call: MethodCall<HistoryContract.SeriesMethod>) {
    read(call) { [device = call.parameters.device] reader in
      let series = try device.map { try reader.recorded($0) } ?? reader.series()
      return HistoryContract.SeriesMethod.Result(series: series.map { HistoryContract.Series($0) })
    }
  }

  /// Use only on the reading thread.
  private final class Streaming: @unchecked Sendable { var stream: SampleStream? }

  private func samples(_ call: MethodCall<HistoryContract.SamplesMethod>) throws {
    let parameters = call.parameters
    let range = try TimeRange.range(parameters.start, parameters.end)
    let streaming = Streaming()
    reads.run { reader in
      let series = try reader.recorded(parameters.device, parameters.properties)
      streaming.stream = try SampleStream(reader, device: parameters.device, series: series, in: range, span: reader.span())
      return series.map { HistoryContract.Series($0) }
    } then: { [weak self] (result: Result<[HistoryContract.Series], any Error>) in
      switch result {
      case .success(let series):
        guard !call.hasEnded else { return }
        call.send(.init(series: series))
        self?.sendNext(call, streaming)
      case .failure(let error): Self.fail(call, error)
      }
    }
  }

  /// Sends the next samples once the client has room for them.
  private func sendNext(_ call: MethodCall<HistoryContract.SamplesMethod>, _ streaming: Streaming) {
    guard !call.hasEnded else { return }
    guard call.hasRoom else {
      call.onRoom { [weak self] in
        call.onRoom {}
        self?.sendNext(call, streaming)
      }
      return
    }
    reads.run { _ in
      try streaming.stream?.next()
    } then: { [weak self] (result: Result<HistoryContract.SamplesMethod.Result?, any Error>) in
      guard !call.hasEnded else { return }
      switch result {
      case .success(let next?):
        call.send(next)
        self?.sendNext(call, streaming)
      case .success(nil): call.reply(.init(progress: 1))
      case .failure(let error): Self.fail(call, error)
      }
    }
  }

  private func plot(_ call: MethodCall<HistoryContract.PlotMethod>) throws {
    let parameters = call.parameters
    let range = try TimeRange.range(parameters.start, parameters.end)
    guard (1...100_000).contains(parameters.points) else {
      throw HistoryContractError.invalidArgument(
        argument: "points", message: "points is \(parameters.points); use a number from 1 to 100000")
    }
    read(call, argument: "start") { reader in
      let series = try reader.recorded(parameters.device, [parameters.property])
      return try Plotting.plot(series, in: range, points: parameters.points, reader)
    }
  }
}

/// Plots of a property, which may have several series.
enum Plotting {
  static func plot(
    _ series: [StoredSeries], in range: ClosedRange<Int64>, points: Int, _ reader: HistoryReader
  ) throws -> HistoryContract.PlotMethod.Result {
    let numbers = series.filter { [.bool, .int, .float].contains($0.key.type) }
    guard let newest = numbers.last else {
      throw HistoryContractError.invalidArgument(
        argument: "property", message: "\(series.first?.key.property ?? "") has no numbers; read its values with Samples")
    }
    var (start, width): (Int64, Int64) = (range.lowerBound, 1)
    var merged: [Int: HistoryContract.PlotPoint] = [:]
    var damage: [String] = []
    // The type of a property may have changed. Series with another unit are left out, because a plot has one unit.
    for candidate in numbers.reversed() where candidate.key.unit == newest.key.unit {
      let plot = try reader.plot(candidate, in: range, points: points)
      (start, width) = (plot.start, plot.width)
      damage += plot.damage
      for (index, aggregate) in plot.points.enumerated() where merged[index] == nil {
        merged[index] = aggregate.map {
          HistoryContract.PlotPoint(index: index, minimum: $0.minimum, maximum: $0.maximum, mean: $0.mean, last: $0.last)
        }
      }
    }
    return HistoryContract.PlotMethod.Result(
      start: Int(start), width: Int(width), unit: newest.key.unit, points: merged.values.sorted { $0.index < $1.index }, damage: damage)
  }
}
