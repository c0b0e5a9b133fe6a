// The times that options such as --since accept: a duration before now, a time of day, a date, or a time with an offset from UTC, as in
// exports. No I/O: now is an argument.

import ArgumentParser
import Glibc

enum TimeArgument {
  static let grammar = "10min, 2h, 3d, 14:30, today, yesterday, 2026-03-01, \"2026-03-01 14:30\" or 2026-03-01T14:30:00Z"

  private static let units: [(names: [String], seconds: Double)] = [
    (["s", "sec"], 1), (["m", "min"], 60), (["h"], 3600), (["d", "day", "days"], 86_400), (["w", "week", "weeks"], 604_800),
  ]

  /// The time in µs since the Unix epoch; nil if the text is not a time. `now` is in seconds since the epoch.
  static func parse(_ text: String, now: Double) -> Int? {
    if let seconds = duration(text.hasPrefix("-") ? String(text.dropFirst()) : text) { return Int((now - seconds) * 1e6) }
    if let time = CivilTime.parse(text) { return time }
    var day = local(now)
    (day.tm_hour, day.tm_min, day.tm_sec) = (0, 0, 0)
    if text == "today" { return microseconds(day) }
    if text == "yesterday" {
      day.tm_mday -= 1
      return microseconds(day)
    }
    let parts = text.split(whereSeparator: { $0 == " " || $0 == "T" }).map(String.init)
    guard (1...2).contains(parts.count) else { return nil }
    if parts[0].contains("-") {
      guard let date = numbers(parts[0], "-", 3...3), (1970...9999).contains(date[0]), (1...12).contains(date[1]),
        (1...31).contains(date[2])
      else { return nil }
      (day.tm_year, day.tm_mon, day.tm_mday) = (Int32(date[0] - 1900), Int32(date[1] - 1), Int32(date[2]))
    } else if parts.count == 2 {
      return nil
    }
    if parts.count == 2 || !parts[0].contains("-") {
      guard let time = numbers(parts[parts.count - 1], ":", 2...3), (0...23).contains(time[0]),
        time[1...].allSatisfy({ (0...59).contains($0) })
      else { return nil }
      (day.tm_hour, day.tm_min, day.tm_sec) = (Int32(time[0]), Int32(time[1]), Int32(time.count > 2 ? time[2] : 0))
    }
    return microseconds(day)
  }

  /// The value of an option in µs since the Unix epoch.
  static func option(_ text: String) throws -> Int {
    guard let time = parse(text, now: Clock.wall) else { throw ValidationError("\"\(text)\" is not a time; use \(grammar)") }
    return time
  }

  /// Seconds; nil if the text is not a duration such as 10min.
  static func duration(_ text: String) -> Double? {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let unit = text.dropFirst(digits.count)
    guard let number = Double(digits), let seconds = units.first(where: { $0.names.contains(String(unit)) })?.seconds else { return nil }
    return number * seconds <= 1e10 ? number * seconds : nil
  }

  private static func numbers(_ text: String, _ separator: Character, _ counts: ClosedRange<Int>) -> [Int]? {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false).map { part in
      part.allSatisfy { $0.isASCII && $0.isNumber } && part.count <= 4 ? Int(part) : nil
    }
    let numbers = parts.compactMap { $0 }
    return numbers.count == parts.count && counts.contains(numbers.count) ? numbers : nil
  }

  static func local(_ seconds: Double) -> tm {
    var time = time_t(seconds)
    var parts = tm()
    localtime_r(&time, &parts)
    return parts
  }

  private static func microseconds(_ day: tm) -> Int? {
    var day = day
    day.tm_isdst = -1
    let time = mktime(&day)
    return time < 0 ? nil : time * 1_000_000
  }
}
