// The methods for trips, charges and parked periods: Periods, Period, Recut. Open periods are taken from the detectors, which have their
// current figures.

import HistoryStore
import Protocols
import SQLite
import ServiceRuntime
import Varlink

extension HistoryServer {
  var periodMethods: [ServerMethod] {
    [
      ServerMethod(HistoryContract.PeriodsMethod.self, right: .observe) { [unowned self] in try periods($0) },
      ServerMethod(HistoryContract.PeriodMethod.self, right: .observe) { [unowned self] in period($0) },
      ServerMethod(HistoryContract.RecutMethod.self, right: .control, requiresMore: true) { [unowned self] in try recut($0) },
    ]
  }

  private func periods(_ call: MethodCall<HistoryContract.PeriodsMethod>) throws {
    let parameters = call.parameters
    let range = try TimeRange.range(parameters.start, parameters.end)
    let kind = try parameters.kind.map { name in
      guard let kind = StoredPeriod.Kind(rawValue: name) else {
        let known = StoredPeriod.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        throw HistoryContractError.invalidArgument(argument: "kind", message: "unknown kind \"\(printable(name))\"; use one of \(known)")
      }
      return kind
    }
    let limit = parameters.limit ?? .max
    guard limit > 0 else {
      throw HistoryContractError.invalidArgument(argument: "limit", message: "limit is \(limit); use a number above 0")
    }
    reads.run { reader in
      if let device = parameters.device { _ = try reader.recorded(device) }
      return try reader.periodIDs(of: parameters.device, kind: kind, in: range, limit: limit)
    } then: { [weak self] (result: Result<[Int], any Error>) in
      switch result {
      case .success(let ids):
        guard let self else { return }
        PeriodStream(call, ids, reads, openPeriods: { self.periodManager.openPeriods }).start()
      case .failure(let error): Self.fail(call, error)
      }
    }
  }

  private func period(_ call: MethodCall<HistoryContract.PeriodMethod>) {
    let number = call.parameters.number
    read(call) { [open = periodManager.openPeriods] reader in
      guard let row = try reader.period(number) else { throw HistoryContractError.noSuchPeriod(number: number) }
      return Self.details(row, try TimeAxis(reader), open)
    }
  }

  /// A stored period. If it is open, its figures are the current ones.
  static func details(
    _ row: StoredPeriod, _ axis: TimeAxis, _ open: [HistoryContract.PeriodMethod.Result]
  ) -> HistoryContract.PeriodMethod.Result {
    let stored = PeriodMapping.details(row, axis)
    guard row.isOpen, var live = open.first(where: { $0.period.device == row.device && $0.period.kind == row.kind.rawValue }) else {
      return stored
    }
    live.period.number = row.id
    live.period.zone = row.zone
    return live
  }

  private func recut(_ call: MethodCall<HistoryContract.RecutMethod>) throws {
    let parameters = call.parameters
    let range = try TimeRange.range(parameters.start, parameters.end)
    reads.run { reader in
      try parameters.device.map { device in
        _ = try reader.recorded(device)
        return [device]
      } ?? reader.devices()
    } then: { [weak self] (result: Result<[String], any Error>) in
      guard let self else { return }
      switch result {
      case .success(let devices):
        let reporter = ProgressReporter(loop: loop) { call.hasEnded || !call.hasRoom ? () : call.send(.init(progress: $0)) }
        recut(call, devices[...], devices.count, range, 0, reporter)
      case .failure(let error): Self.fail(call, error)
      }
    }
  }

  private func recut(
    _ call: MethodCall<HistoryContract.RecutMethod>, _ devices: ArraySlice<String>, _ total: Int, _ range: ClosedRange<Int64>, _ count: Int,
    _ reporter: ProgressReporter
  ) {
    guard let device = devices.first else {
      reporter.isClosed = true
      return call.reply(.init(progress: 1, periods: count))
    }
    guard !call.hasEnded else { return reporter.isClosed = true }
    let progress = Progress()
    reporter.watch(progress, part: total - devices.count, of: total)
    periodManager.recut(device, in: range, progress: progress) { [weak self] result in
      switch result {
      case .success(let found): self?.recut(call, devices.dropFirst(), total, range, count + found, reporter)
      case .failure(let error):
        reporter.isClosed = true
        Self.fail(call, error)
      }
    }
  }
}

/// Reports the progress of a task on another thread to a client, up to five times a second while it changes.
final class ProgressReporter: EventSource {
  private static let interval: Nanoseconds = 200 * .millisecond
  private let report: (Double) -> Void
  private var progress: Progress?
  private var part = (index: 0, count: 1)
  private var reported = -1.0

  init(loop: EventLoop, report: @escaping (Double) -> Void) {
    self.report = report
    super.init()
    wake = SystemClock.monotonic + Self.interval
    loop.add(self)
  }

  /// Reports this progress as one part of several.
  func watch(_ progress: Progress, part: Int, of count: Int) { (self.progress, self.part) = (progress, (part, max(count, 1))) }

  override func timerFired(at now: Instant) {
    wake = now + Self.interval
    let value = (Double(part.index) + (progress?.value ?? 0)) / Double(part.count)
    guard value > reported else { return }
    reported = value
    report(value)
  }
}
