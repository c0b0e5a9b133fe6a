// Aggregates of a numeric series over an interval: minimum, maximum, time-weighted mean, last value and number of samples. Time without a
// value does not count.

/// The aggregate of a numeric series over an interval.
public struct Aggregate: Sendable, Equatable {
  public private(set) var minimum: Double
  public private(set) var maximum: Double
  public private(set) var last: Double
  /// The number of samples.
  public private(set) var samples: Int
  /// The total time with a value, in microseconds.
  public private(set) var covered: Int64
  /// The sum of the values, each multiplied by its duration in microseconds.
  private var integral: Double

  /// The mean, weighted by time.
  public var mean: Double { covered > 0 ? integral / Double(covered) : last }

  /// Creates the aggregate of one value that was valid for `duration` µs.
  init(_ value: Double, duration: Int64, samples: Int) {
    (minimum, maximum, last) = (value, value, value)
    (self.samples, covered, integral) = (samples, duration, value * Double(duration))
  }

  /// Creates an aggregate from stored figures.
  init(minimum: Double, maximum: Double, mean: Double, last: Double, samples: Int, covered: Int64) {
    (self.minimum, self.maximum, self.last) = (minimum, maximum, last)
    (self.samples, self.covered, integral) = (samples, covered, mean * Double(covered))
  }

  /// Adds a later aggregate.
  mutating func add(_ other: Aggregate) {
    minimum = min(minimum, other.minimum)
    maximum = max(maximum, other.maximum)
    last = other.last
    samples += other.samples
    covered += other.covered
    integral += other.integral
  }
}

/// The aggregates of one series in intervals of equal width, counted from an origin.
struct Aggregates {
  let width: Int64
  let origin: Int64
  /// The interval of the latest segment, held outside `others` because the next segment usually falls into it too.
  private var current: (index: Int, aggregate: Aggregate)?
  private var others: [Int: Aggregate] = [:]

  init(width: Int64, origin: Int64 = 0) {
    self.width = width
    self.origin = origin
  }

  var isEmpty: Bool { current == nil && others.isEmpty }

  /// An empty collection with the same intervals.
  var empty: Aggregates { Aggregates(width: width, origin: origin) }

  func index(of time: Int64) -> Int {
    let (quotient, remainder) = (time - origin).quotientAndRemainder(dividingBy: width)
    return Int(remainder < 0 ? quotient - 1 : quotient)
  }

  /// Adds a segment, split at the boundaries of the intervals.
  mutating func add(_ segment: Segment) {
    var (start, samples) = (segment.start, segment.samples)
    repeat {
      let index = index(of: start)
      let end = min(segment.end, origin + Int64(index + 1) * width)
      add(Aggregate(segment.value, duration: end - start, samples: samples), at: index)
      (start, samples) = (end, 0)
    } while start < segment.end
  }

  mutating func add(_ aggregate: Aggregate, at index: Int) {
    if current?.index != index {
      if let current { others[current.index] = current.aggregate }
      current = others.removeValue(forKey: index).map { (index, $0) }
    }
    if current?.aggregate.add(aggregate) == nil { current = (index, aggregate) }
  }

  /// The aggregates, by the index of their interval.
  var intervals: [Int: Aggregate] {
    guard let current else { return others }
    var intervals = others
    intervals[current.index] = current.aggregate
    return intervals
  }
}
