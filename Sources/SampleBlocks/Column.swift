// The samples of one series in a block, decoded.

import Protocols

/// A value of a series at one time, or the reason for its absence.
public struct Sample: Sendable, Equatable {
  /// Microseconds on the time axis of the block.
  public var time: Int64
  public var content: Reading.Content

  /// Creates a sample; `time` in microseconds.
  public init(time: Int64, content: Reading.Content) {
    self.time = time
    self.content = content
  }
}

/// The samples of one series, ordered by time. A value is valid until the next sample.
public struct Column: Sendable {
  /// The values of the samples that are not absent.
  enum Values: Sendable {
    case bools([Bool])
    case ints([Int64])
    case floats([Double])
    case strings([String])
    case lists([[String]])
  }

  /// The ID of the series.
  public let series: Int
  /// The time of each sample.
  public let times: [Int64]
  private let values: Values
  /// For each sample, the index in `values`, or the complement of an index in `reasons`; nil if no sample is absent.
  private let positions: [Int32]?
  private let reasons: [String]

  init(series: Int, times: [Int64], values: Values, positions: [Int32]?, reasons: [String]) {
    self.series = series
    self.times = times
    self.values = values
    self.positions = positions
    self.reasons = reasons
  }

  /// The number of samples.
  public var count: Int { times.count }

  /// The content of a sample.
  public func content(_ index: Int) -> Reading.Content {
    let position = positions.map { Int($0[index]) } ?? index
    if position < 0 { return .absent(reasons[~position]) }
    return switch values {
    case .bools(let values): .value(.bool(values[position]))
    case .ints(let values): .value(.int(Int(values[position])))
    case .floats(let values): .value(.float(values[position]))
    case .strings(let values): .value(.string(values[position]))
    case .lists(let values): .value(.list(values[position]))
    }
  }

  /// The value of a sample as a number (true is 1), or nil if it is absent or not a number.
  @inline(__always) public func number(_ index: Int) -> Double? {
    let position = positions.map { Int($0[index]) } ?? index
    if position < 0 { return nil }
    return switch values {
    case .bools(let values): values[position] ? 1 : 0
    case .ints(let values): Double(values[position])
    case .floats(let values): values[position]
    case .strings, .lists: nil
    }
  }

  /// All samples as numbers (true is 1), NaN for absent ones; nil if the values are strings or lists.
  public var numbers: [Double]? {
    let present: [Double]
    switch values {
    case .bools(let values): present = values.map { $0 ? 1 : 0 }
    case .ints(let values): present = values.map { Double($0) }
    case .floats(let values): present = values
    case .strings, .lists: return nil
    }
    return positions.map { $0.map { $0 < 0 ? .nan : present[Int($0)] } } ?? present
  }

  /// The sample at an index.
  public subscript(index: Int) -> Sample { Sample(time: times[index], content: content(index)) }

  /// All samples.
  public var samples: [Sample] { times.indices.map { self[$0] } }
}
