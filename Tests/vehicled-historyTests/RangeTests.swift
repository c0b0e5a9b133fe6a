// The ranges of time that clients name.

import Testing

@testable import vehicled_history

@Suite struct RangeTests {
  /// Recut replaced all periods for a range that began at the largest number, and trapped for one that ended at the smallest.
  @Test(arguments: [(nil, nil), (.min, .min), (.max, .max), (.min, .max), (nil, -1), (0, nil)] as [(Int?, Int?)])
  func `a range leaves room for a width more or less`(_ start: Int?, _ end: Int?) throws {
    let range = try TimeRange.range(start, end)
    #expect(range.lowerBound > .min / 2 - 1 && range.upperBound < .max / 2 + 2)
    #expect(range.contains(0) == (start ?? 0 <= 0 && end ?? 0 >= 0))
  }

  @Test func `the times of values are not changed`() throws {
    #expect(try TimeRange.range(-5, 1_700_000_000_000_000) == -5...1_700_000_000_000_000)
    #expect(throws: (any Error).self) { try TimeRange.range(1, 0) }
  }
}
