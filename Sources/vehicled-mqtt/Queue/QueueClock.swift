// The clock of the queue's ages: the time since the queue was created, as far as it is known. The wall clock alone would discard messages
// when it is set. No I/O.

struct QueueClock: Equatable, Sendable {
  /// What the disk has of an earlier run, in µs.
  struct Mark: Equatable, Sendable {
    /// By the queue's clock, and by the wall clock at the same moment.
    var time: Int64
    var wall: Int64
  }

  /// The longest time between two runs that counts, in µs: a wall clock that is ahead by years must not discard everything.
  private static let maxPause: Int64 = 7 * 86_400 * 1_000_000

  private let offset: Int64

  /// Continues after the mark of an earlier run. `boot` is CLOCK_BOOTTIME and `wall` the wall clock, in µs.
  init(after mark: Mark, boot: Int64, wall: Int64) {
    let pause = mark.wall == 0 ? 0 : min(max(wall.subtractingReportingOverflow(mark.wall).partialValue, 0), Self.maxPause)
    offset = mark.time + pause - boot
  }

  /// The time in µs at this time of CLOCK_BOOTTIME.
  func time(boot: Int64) -> Int64 { boot + offset }
}
