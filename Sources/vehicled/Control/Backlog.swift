// The unanswered input of a client: its bytes, the calls in them and their arrival times. Reads no clock and owns no socket.

import Protocols
import Varlink

struct Backlog {
  /// The maximum size of a call from a client without a right, in bytes.
  static let unauthorizedLimit = 16 << 10

  private var framing = VarlinkFraming(limit: unauthorizedLimit)
  /// Cumulative byte counts by arrival time, for the bytes that are not answered yet.
  private var arrivals: [(bytes: Int, at: Instant)] = []
  private var arrived = 0
  /// How many of the next bytes have waited in the kernel's buffer, and since when at most.
  private var late: (bytes: Int, since: Instant) = (0, 0)
  private static let grain: Nanoseconds = 5 * .millisecond
  private static let maxArrivals = 256

  /// The number of unanswered bytes.
  var pending: Int { framing.pending }
  /// The maximum size of a call, in bytes.
  var limit: Int {
    get { framing.limit }
    set { framing.limit = newValue }
  }

  /// Whether a complete call is buffered. Throws if an incomplete call exceeds the limit.
  mutating func hasCall() throws -> Bool { try framing.hasMessage() }

  /// Returns the next call and when it was complete, up to `grain` too early.
  mutating func next() throws -> (call: VarlinkCall, arrived: Instant?)? {
    guard let call = try framing.next({ try VarlinkCall($0) }) else { return nil }
    let taken = arrived - framing.pending
    while let first = arrivals.first, first.bytes < taken { arrivals.removeFirst() }
    let at = arrivals.first?.at
    // The bytes after this call have their own arrival time.
    if arrivals.first?.bytes == taken { arrivals.removeFirst() }
    return (call, at)
  }

  /// Appends received bytes.
  mutating func append(_ bytes: some Collection<UInt8>, at now: Instant) {
    let old = min(late.bytes, bytes.count)
    late.bytes -= old
    if old > 0 { note(old, at: late.since) }
    if bytes.count > old { note(bytes.count - old, at: now) }
    framing.append(bytes)
  }

  /// Records that reading was paused since `since`: the bytes in the kernel's buffer count as that old.
  mutating func resumes(behind bytes: Int, since: Instant) { late = (bytes, since) }

  /// Discards all input.
  mutating func clear() { self = Backlog() }

  /// Records an arrival. Bytes within `grain` share the entry of the first, which bounds the list.
  private mutating func note(_ count: Int, at moment: Instant) {
    arrived += count
    if let last = arrivals.last, moment - last.at < Self.grain || arrivals.count >= Self.maxArrivals {
      arrivals[arrivals.count - 1].bytes = arrived
    } else {
      arrivals.append((arrived, moment))
    }
  }
}
