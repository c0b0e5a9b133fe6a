// What a client has sent and nobody has answered yet: the bytes, how they are cut into calls, and when they came. Reads no
// clock and owns no socket.

import Protocols

struct Backlog {
  /// The longest call of a client that has no right yet, in bytes.
  static let strangerLimit = 16 << 10

  private var framing = VarlinkFraming(limit: strangerLimit)
  /// How many bytes had come at each moment, as far as they were not answered yet.
  private var arrivals: [(bytes: Int, at: Instant)] = []
  private var arrived = 0
  /// How many of the bytes that come next have waited in the kernel, and since when at the longest.
  private var late: (bytes: Int, since: Instant) = (0, 0)
  private static let grain: Nanoseconds = 5 * .millisecond
  private static let maxArrivals = 256

  /// How many bytes wait.
  var pending: Int { framing.pending }
  /// The longest call that is taken, in bytes.
  var limit: Int {
    get { framing.limit }
    set { framing.limit = newValue }
  }

  /// Whether a whole call waits. Throws where more bytes than the limit are no call.
  mutating func hasCall() throws -> Bool { try framing.hasMessage() }

  /// The next call, and when all of it had come, or a little earlier.
  mutating func next() throws -> (call: VarlinkCall, arrived: Instant?)? {
    guard let call = try framing.next({ try VarlinkCall($0) }) else { return nil }
    let taken = arrived - framing.pending
    while let first = arrivals.first, first.bytes < taken { arrivals.removeFirst() }
    let at = arrivals.first?.at
    // What comes next is of its own time.
    if arrivals.first?.bytes == taken { arrivals.removeFirst() }
    return (call, at)
  }

  /// Bytes came.
  mutating func append(_ bytes: some Collection<UInt8>, at now: Instant) {
    let old = min(late.bytes, bytes.count)
    late.bytes -= old
    if old > 0 { note(old, at: late.since) }
    if bytes.count > old { note(bytes.count - old, at: now) }
    framing.append(bytes)
  }

  /// Reading was paused since that moment, and so many bytes wait in the kernel: they count as that old.
  mutating func resumes(behind bytes: Int, since: Instant) { late = (bytes, since) }

  /// Forgets everything.
  mutating func clear() { self = Backlog() }

  /// Takes note of when bytes came. Neighbours share a mark, that of the first: there are never many.
  private mutating func note(_ count: Int, at moment: Instant) {
    arrived += count
    if let last = arrivals.last, moment - last.at < Self.grain || arrivals.count >= Self.maxArrivals {
      arrivals[arrivals.count - 1].bytes = arrived
    } else {
      arrivals.append((arrived, moment))
    }
  }
}
