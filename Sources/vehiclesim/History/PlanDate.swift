// A date, the argument of the option --start. Source: Howard Hinnant's paper on chrono-compatible algorithms.

import ArgumentParser

/// A day of the Gregorian calendar.
struct PlanDate: ExpressibleByArgument, CustomStringConvertible {
  /// Days since 1970-01-01.
  let day: Int

  init(day: Int) { self.day = day }

  /// Parses `2024-01-31`.
  init?(argument: String) {
    let parts = argument.split(separator: "-", omittingEmptySubsequences: false)
    let numbers = parts.compactMap { part in part.allSatisfy(\.isWholeNumber) ? Int(part) : nil }
    guard parts.count == 3, parts.map(\.utf8.count) == [4, 2, 2], numbers.count == 3 else { return nil }
    self.init(numbers[0], numbers[1], numbers[2])
    guard numbers[0] >= 1970, description == argument else { return nil }
  }

  private init(_ year: Int, _ month: Int, _ dayOfMonth: Int) {
    let marchYear = month <= 2 ? year - 1 : year
    let era = marchYear / 400
    let yearOfEra = marchYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + dayOfMonth - 1
    day = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private var parts: (year: Int, month: Int, day: Int) {
    let days = day + 719_468
    let era = days / 146_097
    let dayOfEra = days - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let isNextYear = month >= 10
    return (yearOfEra + era * 400 + (isNextYear ? 1 : 0), isNextYear ? month - 9 : month + 3, dayOfYear - (153 * month + 2) / 5 + 1)
  }

  /// 0: Monday.
  var weekday: Int { (day + 3) % 7 }
  /// The number of days since the first of January.
  var dayOfYear: Int { day - PlanDate(parts.year, 1, 1).day }

  var description: String {
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(parts.year)-\(two(parts.month))-\(two(parts.day))"
  }
}
