// Columns of recorded samples. What cannot change anything is left out: reading a year of samples takes seconds.

/// The samples of a device over some time, a column for each role.
public struct SampleColumns: Sendable {
  fileprivate struct Column {
    var role: Role
    var times: [Int64]
    var values: [Double]
  }

  private var columns: [Column] = []
  /// Converts the times to wall-clock time.
  let offset: Int64
  /// The time from which values are known; .min if the columns continue earlier ones, so that earlier samples only repeat those.
  let start: Int64

  /// Creates columns whose times become wall-clock time (µs) with `offset`. After a gap, they are valid from `start` on.
  public init(offset: Int64, start: Int64, continues: Bool) { (self.offset, self.start) = (offset, continues ? .min : start) }

  var continues: Bool { start == .min }

  /// Adds the samples of a role, in the unit of the role and in chronological order. NaN is an absent value.
  public mutating func append(_ role: Role, at times: [Int64], _ values: [Double]) {
    columns.append(Column(role: role, times: times, values: values))
  }

  /// Whether samples of the battery power can change something between two times: power is computed from current and voltage as far as they
  /// are known.
  public func needBatteryPower(from start: Int64, to end: Int64) -> Bool {
    // After a gap, values are polled one after the other.
    guard let spans = spansWithout(Role.batteryPower.precedence) else { return true }
    return spans.contains { $0.upperBound >= start + .seconds(2) && $0.lowerBound <= end }
  }

  /// A cursor for each column, without the samples that are superseded by others.
  func cursors() -> [SampleCursor] {
    columns.map { column in
      guard let spans = spansWithout(column.role.precedence) else { return SampleCursor(column.role, at: column.times, column.values) }
      var (times, values): ([Int64], [Double]) = ([], [])
      for span in spans {
        let indexes = column.times.firstIndex(from: span.lowerBound)..<column.times.firstIndex(from: span.upperBound)
        times += column.times[indexes]
        values += column.values[indexes]
      }
      return SampleCursor(column.role, at: times, values)
    }
  }

  /// The times at which one of these roles is not known, in ascending order; nil if there are no roles, or not all have a column.
  private func spansWithout(_ roles: [Role]) -> [Range<Int64>]? {
    var spans: [Range<Int64>] = []
    for role in roles {
      guard let column = columns.first(where: { $0.role == role }) else { return nil }
      spans += column.unknownSpans
    }
    return roles.isEmpty ? nil : spans.sorted { $0.lowerBound < $1.lowerBound }.joined()
  }
}

extension SampleColumns.Column {
  /// The times at which there is no valid value of at most `Limits.sampleAge`.
  fileprivate var unknownSpans: [Range<Int64>] {
    var spans: [Range<Int64>] = []
    // Until when the value is known; the time before the first sample is unknown.
    var end = Int64.min
    for (time, value) in zip(times, values) {
      guard role.isValid(value) else {
        end = min(end, time)
        continue
      }
      if time > end { spans.append(end..<time) }
      end = time + Limits.sampleAge + 1
    }
    return spans + [end..<Int64.max]
  }
}

extension [Range<Int64>] {
  /// Joins those that overlap or adjoin each other.
  fileprivate func joined() -> [Range<Int64>] {
    reduce(into: []) { joined, span in
      if let last = joined.last, span.lowerBound <= last.upperBound {
        joined[joined.count - 1] = last.lowerBound..<Swift.max(last.upperBound, span.upperBound)
      } else {
        joined.append(span)
      }
    }
  }
}

extension [Int64] {
  /// The index of the first time from `start` on.
  fileprivate func firstIndex(from start: Int64) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < start { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension Role {
  /// The roles that supersede this one while all of them are known.
  fileprivate var precedence: [Role] {
    switch self {
    case .motorSpeed, .secondMotorSpeed, .fallbackSpeed: [.speed]
    case .batteryPower: [.batteryCurrent, .batteryVoltage]
    default: []
    }
  }

  fileprivate func isValid(_ value: Double) -> Bool {
    switch self {
    case .speed: abs(value) <= Limits.speed
    case .batteryCurrent: Limits.current ~= value
    case .batteryVoltage: Limits.voltage ~= value
    default: !value.isNaN
    }
  }
}

/// The remaining samples of a column.
struct SampleCursor {
  let role: Role
  /// The time of the next sample in µs, before the offset is added; `.max` after the last one.
  private(set) var time: Int64
  private let times: [Int64]
  private let values: [Double]
  private var next = 0

  /// Starts at the first sample. An absent value is NaN.
  init(_ role: Role, at times: [Int64], _ values: [Double]) {
    (self.role, self.times, self.values) = (role, times, values)
    time = times.first ?? .max
  }

  /// The next sample at this wall-clock time.
  func sample(at time: Int64) -> Sample { Sample(time, role, number.isNaN ? nil : number) }

  /// The value of the next sample; NaN if it is absent, and after the last one.
  var number: Double { next < values.count ? values[next] : .nan }

  /// Continues with the following sample.
  mutating func advance() {
    next += 1
    time = next < times.count ? times[next] : .max
  }
}
