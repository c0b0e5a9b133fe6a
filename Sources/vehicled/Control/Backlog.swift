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
  /// The bytes that waited in the kernel's buffer while reading was paused, and which the next reads return first: their number, and the
  /// start of the pause.
  private var delayed: (bytes: Int, since: Instant) = (0, 0)
  /// The resolution of arrival times.
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

  /// Returns the next call and the time when its last byte arrived. The time may be too early, because arrivals share entries.
  mutating func next() throws -> (call: VarlinkCall, arrived: Instant?)? {
    guard let call = try framing.next({ try VarlinkCall($0) }) else { return nil }
    let consumed = arrived - framing.pending
    while let first = arrivals.first, first.bytes < consumed { arrivals.removeFirst() }
    let at = arrivals.first?.at
    // If the entry ends with this call, the bytes after the call have an entry of their own.
    if arrivals.first?.bytes == consumed { arrivals.removeFirst() }
    return (call, at)
  }

  /// Appends received bytes.
  mutating func append(_ bytes: some Collection<UInt8>, at now: Instant) {
    let old = min(delayed.bytes, bytes.count)
    delayed.bytes -= old
    if old > 0 { recordArrival(old, at: delayed.since) }
    if bytes.count > old { recordArrival(bytes.count - old, at: now) }
    framing.append(bytes)
  }

  /// Records that reading was paused from `since` until now: the bytes that are now in the kernel's buffer count as received at `since`.
  mutating func markDelayed(_ bytes: Int, since: Instant) { delayed = (bytes, since) }

  /// Discards all input.
  mutating func clear() { self = Backlog() }

  /// Records the arrival of `count` bytes. Bytes that arrive within `grain` of the last entry share it. So do all further bytes once there
  /// are `maxArrivals` entries.
  private mutating func recordArrival(_ count: Int, at moment: Instant) {
    arrived += count
    if let last = arrivals.last, moment - last.at < Self.grain || arrivals.count >= Self.maxArrivals {
      arrivals[arrivals.count - 1].bytes = arrived
    } else {
      arrivals.append((arrived, moment))
    }
  }
}
