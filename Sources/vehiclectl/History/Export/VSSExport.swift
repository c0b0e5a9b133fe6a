// Converts exported samples to VSS signals: names, units and values. Series without a signal are omitted. No I/O.

import Protocols
import VSS
import Varlink

struct VSSExport {
  /// The signals as series: the property is the path.
  private(set) var series: [HistoryContract.Series] = []
  /// For each exported series, the indices in `series` and the conversions.
  private var targets: [[(index: Int, signal: VSSSignal)]] = []

  /// Creates the series of the exported ones. All recorded series show which kind of drive a vehicle has.
  init(_ exported: [HistoryContract.Series], recorded: [HistoryContract.Series]) {
    let properties = Dictionary(grouping: recorded, by: \.device).mapValues { Set($0.map(\.property)) }
    for entry in exported {
      let signals = VSSTable.signals(for: entry.property, unit: entry.unit, of: properties[entry.device] ?? [])
      targets.append(signals.enumerated().map { (series.count + $0, $1) })
      series += signals.enumerated().map { index, signal in
        HistoryContract.Series(
          id: series.count + index + 1, device: entry.device, property: signal.path, type: signal.type.rawValue, unit: signal.unit)
      }
    }
  }

  /// The row with the values of the signals. A value that a signal cannot have is absent.
  func row(_ row: ExportRow) -> ExportRow {
    var converted = ExportRow(time: row.time)
    for (index, sample) in row.samples {
      for target in targets[index] {
        var new = sample
        new.series = series[target.index].id
        if let value = sample.value {
          new.value = target.signal.value(value)
          if new.value == nil { new.reason = "no such value in VSS" }
        }
        converted.samples.append((target.index, new))
      }
    }
    return converted
  }
}
