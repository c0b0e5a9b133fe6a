// Lifetime distances from counters that restart, roll back, wrap, or are damaged.

import Testing

@testable import Protocols

@Suite struct OdometerTests {
  /// Reads the counters of a board, in hundredths of a mile, twice per second; its maximum speed is 60 mph.
  private func ride(_ counters: [Int], stored: [UInt8] = []) -> Odometer {
    var odometer = Odometer(stored: stored, maxCountsPerSecond: 60.0 / 36, wrap: 65536)
    for (index, counter) in counters.enumerated() { _ = odometer.update(counter, at: Int64(index) * .second / 2) }
    return odometer
  }

  @Test(arguments: [
    ([0, 1, 2, 5], 5), ([7, 7, 7], 0), ([100, 101, 0, 1, 3], 4), ([5, 4, 3, 4], 3), ([1, 0, -1, -2], 2),
    // One reading with a wrong digit, and a jump that is confirmed.
    ([35, 36, 935, 37, 38], 3), ([35, 36, 935, 936], 901),
    // The board counts hundredths in 16 bits.
    ([32766, 32767, -32768, -32767], 3),
    // A reading outside of 16 bits is not a wrap.
    ([5, -9_999_999, -9_999_999, 3], 9_999_999),
  ]) func `every distance is counted once`(_ counters: [Int], _ total: Int) {
    #expect(ride(counters).total == total)
  }

  @Test func `the total continues after a restart of the board or the daemon`() {
    let before = ride([0, 10, 20])
    #expect(ride([20, 22], stored: before.stored).total == 22)
    // The board was reset meanwhile, or rolled on.
    #expect(ride([0, 3], stored: before.stored).total == 23)
    #expect(ride([200, 200, 201], stored: before.stored).total == 201)
  }

  @Test func `a damaged stored distance restarts at 0`() {
    for odd in ["", "x y", "-5 3", "12", String(repeating: "9", count: 100), "1 2 3", "9223372036854775807 1", "1 -9223372036854775808"] {
      #expect(ride([5, 6], stored: Array(odd.utf8)).total >= 0)
    }
    #expect(ride([], stored: Array("12".utf8)).total == 12)
  }

  @Test func `a gap counts at most as far as the maximum speed allows`() {
    var odometer = Odometer(maxCountsPerSecond: 60.0 / 36)
    _ = odometer.update(0, at: 0)
    _ = odometer.update(150, at: 120 * .second)
    #expect(odometer.total == 150)
  }
}
