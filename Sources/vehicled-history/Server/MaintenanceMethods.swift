// The methods that change or check the stored values: Delete, Rename, Check, Compact, Import.

import ConfigurationFiles
import HistoryStore
import Protocols
import SQLite
import SampleBlocks
import ServiceRuntime
import Varlink

extension HistoryServer {
  var maintenanceMethods: [ServerMethod] {
    [
      ServerMethod(HistoryContract.DeleteMethod.self, right: .control) { [unowned self] in try delete($0) },
      ServerMethod(HistoryContract.RenameMethod.self, right: .control) { [unowned self] in try rename($0) },
      ServerMethod(HistoryContract.CheckMethod.self, right: .observe, requiresMore: true) { [unowned self] in check($0) },
      ServerMethod(HistoryContract.CompactMethod.self, right: .control) { [unowned self] in compact($0) },
      ServerMethod(HistoryContract.ImportMethod.self, right: .control) { [unowned self] in try importBlock($0) },
    ]
  }

  private func delete(_ call: MethodCall<HistoryContract.DeleteMethod>) throws {
    let parameters = call.parameters
    let range = try TimeRange.range(parameters.start, parameters.end)
    let isAllTime = parameters.start == nil && parameters.end == nil
    flush()
    store.run { (store) throws(StoreError) -> Result<(damage: [String], affectsPeriods: Bool), HistoryContractError> in
      var series: [StoredSeries] = []
      do { series = try store.reader.recorded(parameters.device, parameters.property.map { [$0] }) } catch {
        if let error = error as? HistoryContractError { return .failure(error) }
        if let error = error as? StoreError { throw error }
      }
      let affectsPeriods = series.contains { PeriodReplay.signal($0.key) != nil }
      let deletion = HistoryStore.Deletion(
        device: parameters.device, property: parameters.property, range: isAllTime ? nil : range,
        affectsPeriods: affectsPeriods)
      return .success((try store.delete(deletion), affectsPeriods))
    } then: { [weak self] result in
      switch result {
      case .success(.success(let deleted)):
        self?.deleted(parameters.device, parameters.property, range, isAllTime: isAllTime, affectsPeriods: deleted.affectsPeriods)
        call.reply(.init(damage: deleted.damage))
      case .success(.failure(let error)): call.fail(error)
      case .failure(let error): Self.fail(call, error, argument: "device")
      }
    }
  }

  /// Continues with what was not deleted.
  private func deleted(_ device: String, _ property: String?, _ range: ClosedRange<Int64>, isAllTime: Bool, affectsPeriods: Bool) {
    // Current values that were deleted are recorded again.
    if range.upperBound >= SystemClock.wall { recordAgain(device, property) }
    if isAllTime, property == nil {
      periodManager.reset(device)
    } else if affectsPeriods {
      // An open period must not continue with deleted values.
      periodManager.replayIfObserved(device)
    }
  }

  private func rename(_ call: MethodCall<HistoryContract.RenameMethod>) throws {
    let (device, name) = (call.parameters.device, call.parameters.name)
    guard isDeviceName(name) else {
      throw HistoryContractError.invalidArgument(argument: "name", message: "invalid device name \(quoted(name)); \(deviceNameRule)")
    }
    flush()
    store.run { (store) throws(StoreError) -> Result<Void, HistoryContractError> in
      do { _ = try store.reader.recorded(device) } catch {
        if let error = error as? HistoryContractError { return .failure(error) }
        if let error = error as? StoreError { throw error }
      }
      return .success(try store.rename(device, to: name))
    } then: { [weak self] result in
      switch result {
      case .success(.success):
        self?.periodManager.rename(device, to: name)
        call.reply(.init())
      case .success(.failure(let error)): call.fail(error)
      case .failure(let error): Self.fail(call, error, argument: "name")
      }
    }
  }

  private func check(_ call: MethodCall<HistoryContract.CheckMethod>) {
    let progress = Progress()
    let reporter = ProgressReporter(loop: loop) { call.hasEnded || !call.hasRoom ? () : call.send(.init(progress: $0)) }
    reporter.watch(progress, part: 0, of: 1)
    checks.run { reader in
      try reader.check { progress.set($1 == 0 ? 1 : Double($0) / Double($1)) }
    } then: { (result: Result<CheckResult, any Error>) in
      reporter.isClosed = true
      Self.reply(result.map { .init(progress: 1, blocks: $0.blocks, damage: $0.damage) }, to: call)
    }
  }

  private func compact(_ call: MethodCall<HistoryContract.CompactMethod>) {
    flush()
    store.run { (store) throws(StoreError) in
      let damage = try store.compact()
      try store.shrink()
      return HistoryContract.CompactMethod.Result(size: try store.reader.size(), damage: damage)
    } then: {
      Self.reply($0.mapError { $0 }, to: call)
    }
  }

  private func importBlock(_ call: MethodCall<HistoryContract.ImportMethod>) throws {
    let imported = try ImportedBlock(call.parameters)
    store.run { (store) throws(StoreError) in
      try store.add(imported)
    } then: { [weak self] result in
      if case .success(let count) = result, count > 0 {
        self?.maintenance.imported(imported.device, imported.block.start...imported.block.end)
      }
      Self.reply(result.map { .init(samples: $0) }.mapError { $0 }, to: call, argument: "block")
    }
  }
}

private let deviceNameRule = "use at most 32 lower-case letters, digits and dashes, beginning with a letter"

extension ImportedBlock {
  /// Checks the arguments of Import.
  init(_ parameters: HistoryContract.ImportMethod.Parameters) throws(HistoryContractError) {
    func invalid(_ argument: String, _ message: String) -> HistoryContractError { .invalidArgument(argument: argument, message: message) }
    guard isDeviceName(parameters.device) else {
      throw invalid("device", "invalid device name \(quoted(parameters.device)); \(deviceNameRule)")
    }
    guard (1...200).contains(parameters.source.utf8.count) else {
      throw invalid("source", "the source has \(parameters.source.utf8.count) bytes; use 1 to 200, for example the name of the file")
    }
    guard let bytes = Base64.decode(parameters.block) else { throw invalid("block", "the block is not Base64; encode it as in RFC 4648") }
    let block: Block
    do { block = try Block(bytes) } catch { throw invalid("block", "the block is damaged: \(error)") }
    // Reject times that are 1 << 52 µs (143 years) or more from the epoch.
    guard block.start.magnitude < 1 << 52, block.end.magnitude < 1 << 52 else {
      throw invalid("block", "the times of the block are out of range; use microseconds since the Unix epoch")
    }
    var series: [Int: SeriesKey] = [:]
    for entry in parameters.series {
      guard entry.device == parameters.device else {
        throw invalid(
          "series", "series \(entry.id) belongs to device \(quoted(entry.device)), not \(parameters.device); import one device at a time")
      }
      guard let type = ValueType(rawValue: entry.type) else {
        let known = ValueType.allCases.map(\.rawValue).joined(separator: ", ")
        throw invalid("series", "series \(entry.id) has the unknown type \(quoted(entry.type)); use one of \(known)")
      }
      guard (1...64).contains(entry.property.utf8.count), entry.unit?.utf8.count ?? 0 <= 32 else {
        throw invalid(
          "series", "series \(entry.id) has an invalid name or unit; use 1 to 64 bytes for the name, and at most 32 for the unit")
      }
      series[entry.id] = SeriesKey(device: entry.device, property: entry.property, type: type, unit: entry.unit)
    }
    self.init(device: parameters.device, source: parameters.source, series: series, block: block, continues: parameters.continues)
  }
}
