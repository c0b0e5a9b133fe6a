// What the formats of `history export` have in common: bytes for the start, for each row and for the end. Each format is a pure value.

import Varlink

protocol ExportFormat {
  /// The bytes before the first row.
  mutating func start() -> String
  mutating func row(_ row: ExportRow) throws(Failure) -> String
  /// The bytes after the last row.
  mutating func end() throws(Failure) -> String
}

extension HistoryContract.Series {
  /// DEVICE.PROPERTY
  var reference: String { "\(device).\(property)" }
}

/// Local times of increasing samples: the offset of the zone is looked up once in a quarter of an hour, because it only changes then.
struct ISOTimes {
  private let zone: Zone
  private var quarter = Int.min
  private var offset = 0

  init(_ zone: Zone) { self.zone = zone }

  mutating func text(_ microseconds: Int) -> String {
    let seconds = CivilTime.floor(microseconds, by: 1_000_000)
    if CivilTime.floor(seconds, by: 900) != quarter {
      quarter = CivilTime.floor(seconds, by: 900)
      offset = zone.offset(at: seconds).seconds
    }
    var time = CivilTime(microseconds + offset * 1_000_000, in: .utc)
    time.offset = offset
    return time.iso()
  }
}
