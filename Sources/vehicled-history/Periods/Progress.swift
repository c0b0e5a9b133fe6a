// The progress of a task on another thread.

import Synchronization

/// A number from 0 to 1 that one thread sets and another reads.
final class Progress: Sendable {
  private let thousandths = Atomic(0)

  var value: Double { Double(thousandths.load(ordering: .relaxed)) / 1000 }

  func set(_ value: Double) { thousandths.store(Int(min(max(value, 0), 1) * 1000), ordering: .relaxed) }

  /// Sets the progress to the position of a time in a range.
  func set(_ time: Int64, in range: ClosedRange<Int64>) {
    let length = Double(range.upperBound) - Double(range.lowerBound)
    set(length > 0 ? (Double(time) - Double(range.lowerBound)) / length : 1)
  }
}
