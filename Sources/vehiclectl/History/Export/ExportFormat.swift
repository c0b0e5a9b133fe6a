// The interface of the formats of `history export`: the text at the start, for each row and at the end. No format does I/O.

import Varlink

protocol ExportFormat {
  /// The text before the first row.
  mutating func start() -> String
  mutating func row(_ row: ExportRow) throws(Failure) -> String
  /// The text after the last row.
  mutating func end() throws(Failure) -> String
}

extension HistoryContract.Series {
  /// DEVICE.PROPERTY
  var reference: String { "\(device).\(property)" }
}

/// Local times in ISO 8601. The offset of the zone is looked up once per quarter of an hour, because it never changes within one.
struct ISOTimes {
  private let zone: Zone
  private var quarterHour = Int.min
  private var offset = 0

  init(_ zone: Zone) { self.zone = zone }

  mutating func text(_ microseconds: Int) -> String {
    let seconds = CivilTime.floorDivide(microseconds, by: 1_000_000)
    if CivilTime.floorDivide(seconds, by: 900) != quarterHour {
      quarterHour = CivilTime.floorDivide(seconds, by: 900)
      offset = zone.offset(at: seconds).seconds
    }
    var time = CivilTime(microseconds + offset * 1_000_000, in: .utc)
    time.offset = offset
    return time.iso()
  }
}
