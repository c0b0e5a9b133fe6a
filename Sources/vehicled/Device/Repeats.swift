// What a device says again and again fills the journal of whoever forgets it for a year: an adapter with a bad contact, a car that comes and
// goes. The same words are said three times a minute; then they are counted, and told with their number when the minute is over, the last
// ones last, so that the journal ends with what is true. Pure: instants in, lines out.

import Logging
import Protocols

struct Repeats {
  struct Line: Hashable {
    let level: Logger.Level
    let text: String
    var link: LinkName?
    /// It ends what was wrong.
    var isRelief = false
    /// What happened, by its short name.
    var event: String?
  }

  private struct Entry {
    let line: Line
    var said: Int
    var held = 0
  }

  private static let minute: Nanoseconds = 60 * .second
  private static let most = 3
  /// That all is well again is said once less: the words that come too often end with what is wrong.
  private static func most(_ line: Line) -> Int { line.isRelief ? most - 1 : most }
  /// Of lines that differ each time (they may hold a number) so many are said; of the others the last.
  private static let maxLines = 20
  /// Of events: each of them may matter.
  private static let maxEvents = 200

  /// In the order in which they came last.
  private var entries: [Entry] = []
  private var others = (held: 0, last: Line?.none)
  /// When what was held back is to be told; nil: there is nothing to wait for.
  private(set) var due: Instant?

  /// Whether this is to be said now.
  mutating func admits(_ line: Line, at now: Instant) -> Bool {
    if due == nil { due = now &+ Self.minute }
    if let index = entries.firstIndex(where: { $0.line == line }) {
      var entry = entries.remove(at: index)
      defer { entries.append(entry) }
      if entry.said < Self.most(line) { entry.said += 1 } else { entry.held += 1 }
      return entry.held == 0
    }
    guard entries.count < (line.event == nil ? Self.maxLines : Self.maxEvents) else {
      others = (others.held + 1, line)
      return false
    }
    entries.append(Entry(line: line, said: 1))
    return true
  }

  /// The minute is over: what is to be told of it. What came more often than it may is counted from the start of the next one.
  mutating func end(at now: Instant) -> [Line] {
    var told =
      others.last.map {
        [Line(level: $0.level, text: "\($0.text) (and \(others.held - 1) others in a minute)", link: $0.link, event: $0.event)]
      } ?? []
    told += entries.filter { $0.held > 0 }.map {
      Line(
        level: $0.line.level, text: "\($0.line.text) (\($0.held == 1 ? "once" : "\($0.held) times") more in a minute)", link: $0.line.link,
        event: $0.line.event)
    }
    others = (0, nil)
    entries = entries.filter { $0.held > Self.most }.map { Entry(line: $0.line, said: Self.most($0.line)) }
    due = entries.isEmpty ? nil : now &+ Self.minute
    return told
  }
}
