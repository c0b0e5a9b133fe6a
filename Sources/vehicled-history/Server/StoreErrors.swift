// Converts errors of the store to errors of the contract.

import HistoryStore
import Protocols
import SQLite
import Varlink

extension StoreError {
  /// The error for a client. `argument` is the name of the argument that an `invalid` error refers to.
  func contractError(argument: String) -> HistoryContractError {
    switch kind {
    case .invalid: .invalidArgument(argument: argument, message: description)
    case .diskFull: .storeError(code: "disk-full", message: description)
    case .readOnly: .storeError(code: "read-only", message: description)
    case .damaged, .foreign, .tooNew: .storeError(code: "damaged", message: description)
    case .inUse, .failed: .storeError(code: "failed", message: description)
    }
  }
}

extension HistoryReader {
  /// The series of a device, or of some of its properties; throws if nothing was recorded.
  func recorded(_ device: String, _ properties: [String]? = nil) throws -> [StoredSeries] {
    let devices = try devices()
    guard devices.contains(device) else { throw HistoryContractError.notRecorded(device: device, known: devices) }
    let all = try series(of: device)
    guard let properties else { return all }
    for property in properties where !all.contains(where: { $0.key.property == property }) {
      throw HistoryContractError.notRecorded(
        device: device, property: property, known: Set(all.map(\.key.property)).sorted())
    }
    return all.filter { properties.contains($0.key.property) }
  }
}

/// A range of time from the arguments of a method.
enum TimeRange {
  /// All times, in µs. The bounds are beyond any stored time, but adding an interval to them does not overflow.
  static let all: ClosedRange<Int64> = -1 << 62...1 << 62

  static func range(_ start: Int?, _ end: Int?) throws(HistoryContractError) -> ClosedRange<Int64> {
    let (start, end) = (Int64(start ?? .min), Int64(end ?? .max))
    guard start <= end else {
      throw .invalidArgument(argument: "end", message: "end is before start; swap them")
    }
    return (start...end).clamped(to: all)
  }
}

extension HistoryContract.Series {
  init(_ series: StoredSeries) {
    self.init(
      id: series.id, device: series.key.device, property: series.key.property, type: series.key.type.rawValue, unit: series.key.unit)
  }
}
