// A calendar date and time of day in a time zone. No I/O.
// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (days_from_civil, civil_from_days).

struct CivilTime: Equatable {
  var year: Int
  var month: Int
  var day: Int
  var hour = 0
  var minute = 0
  var second = 0
  var microsecond = 0
  /// The seconds by which local time is ahead of UTC.
  var offset = 0
  /// The abbreviation of the zone, such as "CET".
  var abbreviation = ""

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  private static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

  /// Converts a time in µs since the Unix epoch.
  init(_ microseconds: Int, in zone: Zone) {
    let seconds = Self.floorDivide(microseconds, by: 1_000_000)
    let (offset, abbreviation) = zone.offset(at: seconds)
    let days = Self.floorDivide(seconds + offset, by: 86_400)
    let rest = seconds + offset - days * 86_400
    (year, month, day) = Self.date(days)
    (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60)
    microsecond = microseconds - seconds * 1_000_000
    (self.offset, self.abbreviation) = (offset, abbreviation)
  }

  /// A local time, `offset` seconds ahead of UTC.
  init(_ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0, _ second: Int = 0, offset: Int = 0) {
    (self.year, self.month, self.day, self.hour, self.minute, self.second) = (year, month, day, hour, minute, second)
    self.offset = offset
  }

  /// Seconds since the Unix epoch. A day or month out of range carries over, as in mktime(3).
  var seconds: Int {
    let months = year * 12 + month - 1
    let year = Self.floorDivide(months, by: 12)
    return (Self.days(year, months - year * 12 + 1, 1) + day - 1) * 86_400 + hour * 3600 + minute * 60 + second - offset
  }

  /// Whether the date and the time of day exist; 31 February, for example, does not.
  var isValid: Bool {
    (0..<24).contains(hour) && (0..<60).contains(minute) && (0..<60).contains(second) && (1...12).contains(month)
      && Self.date(Self.days(year, month, day)) == (year, month, day)
  }

  /// The days from 1970-01-01 to a date.
  static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let era = floorDivide(year, by: 400)
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func date(_ days: Int) -> (Int, Int, Int) {
    let days = days + 719_468
    let era = floorDivide(days, by: 146_097)
    let dayOfEra = days - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let fromMarch = (5 * dayOfYear + 2) / 153
    let month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * fromMarch + 2) / 5 + 1)
  }

  /// The quotient, rounded down.
  static func floorDivide(_ number: Int, by divisor: Int) -> Int { number >= 0 ? number / divisor : -((divisor - 1 - number) / divisor) }

  // MARK: Text

  /// `Mon 23 Nov`
  var weekdayAndDay: String {
    let days = Self.days(year, month, day)
    return "\(Self.weekdays[days + 3 - Self.floorDivide(days + 3, by: 7) * 7]) \(dayAndMonth)"
  }
  /// `23 Nov`
  var dayAndMonth: String { "\(day) \(Self.months[month - 1])" }
  /// `Nov 2026`
  var monthAndYear: String { "\(Self.months[month - 1]) \(year)" }
  /// `08:12`
  var clock: String { "\(Self.pair(hour)):\(Self.pair(minute))" }
  /// `08:12:05`
  var clockWithSeconds: String { "\(clock):\(Self.pair(second))" }

  /// ISO 8601 with the offset: `2026-11-23T08:12:05.250000+01:00`; `Z` for UTC if `utc`.
  func iso(utc: Bool = false) -> String {
    var text = "\(year)-\(Self.pair(month))-\(Self.pair(day))T\(clockWithSeconds)"
    if microsecond > 0 { text += ".\(String(1_000_000 + microsecond).dropFirst())" }
    if utc { return text + "Z" }
    let minutes = abs(offset) / 60
    return text + "\(offset < 0 ? "-" : "+")\(Self.pair(minutes / 60)):\(Self.pair(minutes % 60))"
  }

  private static func pair(_ number: Int) -> Substring { String(100 + number).dropFirst() }
}
