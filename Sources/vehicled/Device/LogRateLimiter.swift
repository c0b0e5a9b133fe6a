// A rate limiter for the log lines of a device, so that a loose contact does not fill the journal. The same line is logged up to three
// times a minute. Further repeats are counted, and summarised at the end of the minute. In the summary, the most recent line comes last, so
// that the journal ends with the current state.

import Logging
import Protocols

struct LogRateLimiter {
  struct Line: Hashable {
    let level: Logger.Level
    let text: String
    var link: LinkName?
    /// Whether it reports the end of a fault.
    var isRecovery = false
    /// The name of the event, if the line reports one.
    var event: String?
  }

  private struct Entry {
    let line: Line
    var logged: Int
    var suppressed = 0
  }

  private static let minute: Nanoseconds = 60 * .second
  private static let maxRepeats = 3
  /// A recovery is logged one time fewer, so that the last line of an alternating pair is the fault.
  private static func limit(for line: Line) -> Int { line.isRecovery ? maxRepeats - 1 : maxRepeats }
  /// Once a minute has this many different lines, only the last further one is logged, in the summary. A line that contains a
  /// changing number counts as many different lines.
  private static let maxLines = 20
  /// The limit from which only the last further event is logged. It is higher, because each event may matter.
  private static let maxEvents = 200

  /// Sorted by the last occurrence of the line.
  private var entries: [Entry] = []
  /// The lines beyond the maximum number of different lines.
  private var others = (suppressed: 0, last: Line?.none)
  /// When the current minute ends and its summary is due; nil if no minute has started.
  private(set) var due: Instant?

  /// Counts a line and returns whether to log it now.
  mutating func admit(_ line: Line, at now: Instant) -> Bool {
    if due == nil { due = now &+ Self.minute }
    if let index = entries.firstIndex(where: { $0.line == line }) {
      var entry = entries.remove(at: index)
      defer { entries.append(entry) }
      if entry.logged < Self.limit(for: line) { entry.logged += 1 } else { entry.suppressed += 1 }
      return entry.suppressed == 0
    }
    let isEvent = line.event != nil
    guard entries.count(where: { ($0.line.event != nil) == isEvent }) < (isEvent ? Self.maxEvents : Self.maxLines) else {
      others = (others.suppressed + 1, line)
      return false
    }
    entries.append(Entry(line: line, logged: 1))
    return true
  }

  /// Ends the minute and returns the summary lines. A line that was suppressed more than `maxRepeats` times stays suppressed in the next
  /// minute.
  mutating func endMinute(at now: Instant) -> [Line] {
    var summary =
      others.last.map {
        [Line(level: $0.level, text: "\($0.text) (and \(others.suppressed - 1) other messages in 1 min)", link: $0.link, event: $0.event)]
      } ?? []
    summary += entries.filter { $0.suppressed > 0 }.map {
      Line(
        level: $0.line.level, text: "\($0.line.text) (repeated \($0.suppressed == 1 ? "once" : "\($0.suppressed) times") in 1 min)",
        link: $0.line.link, event: $0.line.event)
    }
    others = (0, nil)
    entries = entries.filter { $0.suppressed > Self.maxRepeats }.map { Entry(line: $0.line, logged: Self.limit(for: $0.line)) }
    due = entries.isEmpty ? nil : now &+ Self.minute
    return summary
  }
}
