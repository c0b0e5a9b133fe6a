// The status queries (command F) to a slcan adapter after a request without a response. The reply, a status or a BEL of an adapter that has
// none, arrives after everything that the adapter had received before: a response that was only delayed by the connection precedes it.

struct StatusQuery: Sendable {
  /// The time for the reply if the adapter has replied before, and besides the latency if it has not.
  private static let (timeout, firstTimeout): (Nanoseconds, Nanoseconds) = (.second, 250 * .millisecond)
  /// The consecutive queries without a reply after which no more are sent.
  private static let maxMisses = 3

  /// The end of the wait for the reply; nil if there is no such wait.
  private(set) var deadline: Instant?
  /// The number of queries whose reply has not arrived. A wait can end before it does.
  private var outstanding = 0
  private var hasReplied = false
  private var misses = 0
  /// Whether the next status replies to a query whose wait has ended without it.
  private var expectsLateReply = false

  /// Whether a reply can arrive.
  var isOutstanding: Bool { outstanding > 0 }
  /// Whether the adapter may reply to queries.
  var isSupported: Bool { misses < Self.maxMisses }

  /// Begins the wait for the reply to a query that is sent now. `latency`: the time that the connection to the adapter takes.
  mutating func begin(latency: Nanoseconds, at now: Instant) {
    deadline = now &+ (hasReplied ? Self.timeout : Self.firstTimeout &+ latency)
    outstanding += 1
  }

  /// Handles a reply, and returns whether it is the awaited one. `isStatus`: whether it is a status, and not a BEL.
  mutating func replied(isStatus: Bool) -> Bool {
    hasReplied = true
    if isStatus, expectsLateReply {
      expectsLateReply = false
      return false
    }
    (misses, outstanding) = (0, max(outstanding - 1, 0))
    return deadline != nil && outstanding == 0
  }

  /// Handles the end of the wait without a reply. One reply that is only late is expected; if the next is missing too, it was lost.
  mutating func expired() { (expectsLateReply, misses, outstanding) = (misses == 0, misses + 1, 0) }

  /// Ends the wait. The reply can still arrive.
  mutating func cancel() { deadline = nil }
}
