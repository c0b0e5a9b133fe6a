// A date, the argument of the option --start.

import ArgumentParser
import Glibc
import Protocols

/// A day of the Gregorian calendar.
struct PlanDate: ExpressibleByArgument, CustomStringConvertible {
  /// Days since 1970-01-01.
  let day: Int

  init(day: Int) { self.day = day }

  /// Parses `2024-01-31`.
  init?(argument: String) {
    let numbers = argument.split(separator: "-").compactMap { Int32($0) }
    guard argument.utf8.count == 10, numbers.count == 3, numbers[0] >= 1970 else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
    self.init(day: timegm(&parts) / 86_400)
    guard description == argument else { return nil }
  }

  /// The day of the week, 0 for Monday.
  var weekday: Int { (day + 3) % 7 }

  /// The number of days since the first of January.
  var dayOfYear: Int {
    var (seconds, parts) = (day * 86_400, tm())
    gmtime_r(&seconds, &parts)
    return Int(parts.tm_yday)
  }

  var description: String { String(WallTime.isoTime(Int64(day) * 86_400_000_000).prefix(10)) }
}
