// The rule of a time zone that applies in every year, such as `CET-1CEST,M3.5.0,M10.5.0/3`. No I/O.
// Source: POSIX.1-2017, chapter 8, TZ; RFC 8536 section 3.3.1 (change times from -167 to 167 hours).

struct ZoneRule: Equatable, Sendable {
  /// When an offset takes effect: a day of the year, and the seconds since the start of that day in local time.
  private struct Change: Equatable, Sendable {
    enum Day: Equatable, Sendable {
      /// The week of a month (5: the last one) and the day of the week (0: Sunday).
      case week(month: Int, week: Int, weekday: Int)
      /// 1 to 365; 29 February is not counted.
      case julian(Int)
      /// 0 to 365.
      case ordinal(Int)
    }
    var day: Day
    var time: Int

    /// Seconds since the Unix epoch, in local time.
    func seconds(in year: Int) -> Int {
      let start = CivilTime.days(year, 1, 1)
      let isLeap = CivilTime.days(year + 1, 1, 1) - start == 366
      let days: Int
      switch day {
      case .ordinal(let day): days = start + day
      case .julian(let day): days = start + day - 1 + (isLeap && day >= 60 ? 1 : 0)
      case .week(let month, let week, let weekday):
        let first = CivilTime.days(year, month, 1)
        let next = month == 12 ? CivilTime.days(year + 1, 1, 1) : CivilTime.days(year, month + 1, 1)
        let firstWeekday = CivilTime.floorDivide(first + 4, by: 7)
        let day = first + (weekday - (first + 4 - firstWeekday * 7) + 7) % 7 + 7 * (week - 1)
        days = day < next ? day : day - 7
      }
      return days * 86_400 + time
    }
  }

  let standard: Zone.Offset
  private var summer: Zone.Offset?
  private var start: Change?
  private var end: Change?

  /// Parses a rule; nil if the text is not a rule.
  init?(_ text: String) {
    var rest = Substring(text)
    guard let name = Self.name(&rest), let offset = Self.time(&rest) else { return nil }
    standard = Zone.Offset(seconds: -offset, abbreviation: name)
    guard !rest.isEmpty else { return }
    guard let name = Self.name(&rest) else { return nil }
    let ahead = rest.isEmpty || rest.hasPrefix(",") ? nil : Self.time(&rest)
    summer = Zone.Offset(seconds: ahead.map { -$0 } ?? standard.seconds + 3600, abbreviation: name)
    let changes = rest.split(separator: ",").map { Self.change($0) }
    guard changes.count == 2, let start = changes[0], let end = changes[1] else { return nil }
    (self.start, self.end) = (start, end)
  }

  func offset(at seconds: Int) -> Zone.Offset {
    guard let summer, let start, let end else { return standard }
    let year = CivilTime(seconds * 1_000_000, in: .utc).year
    // Around New Year, the local year can differ from the UTC year; no zone changes its offset then.
    let (from, to) = (start.seconds(in: year) - standard.seconds, end.seconds(in: year) - summer.seconds)
    let isSummer = from <= to ? (from..<to).contains(seconds) : !(to..<from).contains(seconds)
    return isSummer ? summer : standard
  }

  private static func name(_ rest: inout Substring) -> String? {
    let isQuoted = rest.hasPrefix("<")
    if isQuoted { rest = rest.dropFirst() }
    let name = rest.prefix { isQuoted ? $0 != ">" : $0.isASCII && $0.isLetter }
    rest = rest.dropFirst(name.count + (isQuoted ? 1 : 0))
    return name.count >= 3 ? String(name) : nil
  }

  /// Parses `[+-]hh[:mm[:ss]]`. Returns seconds.
  private static func time(_ rest: inout Substring) -> Int? {
    let text = rest.prefix { $0.isASCII && ($0.isNumber || "+-:".contains($0)) }
    rest = rest.dropFirst(text.count)
    let digits = text.drop { $0 == "+" || $0 == "-" }
    let parts = digits.split(separator: ":", omittingEmptySubsequences: false).map { $0.count <= 3 ? Int($0) : nil }
    guard (1...3).contains(parts.count), let hours = parts[0], hours <= 167 else { return nil }
    let rest = parts.dropFirst().map { $0 ?? 60 }
    guard rest.allSatisfy({ (0...59).contains($0) }) else { return nil }
    let seconds = hours * 3600 + (rest.first ?? 0) * 60 + (rest.count > 1 ? rest[rest.startIndex + 1] : 0)
    return text.hasPrefix("-") ? -seconds : seconds
  }

  private static func change(_ text: Substring) -> Change? {
    let parts = text.split(separator: "/", maxSplits: 1)
    var time = 7200
    if parts.count == 2 {
      var rest = parts[1]
      guard let given = Self.time(&rest), rest.isEmpty else { return nil }
      time = given
    }
    guard let day = parts.first else { return nil }
    if day.hasPrefix("M") {
      let numbers = day.dropFirst().split(separator: ".").compactMap { Int($0) }
      guard numbers.count == 3, (1...12).contains(numbers[0]), (1...5).contains(numbers[1]), (0...6).contains(numbers[2]) else {
        return nil
      }
      return Change(day: .week(month: numbers[0], week: numbers[1], weekday: numbers[2]), time: time)
    }
    if day.hasPrefix("J") { return Int(day.dropFirst()).flatMap { (1...365).contains($0) ? Change(day: .julian($0), time: time) : nil } }
    return Int(day).flatMap { (0...365).contains($0) ? Change(day: .ordinal($0), time: time) : nil }
  }
}
