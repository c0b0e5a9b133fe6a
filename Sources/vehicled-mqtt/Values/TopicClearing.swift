// Clears the retained messages of what no longer exists, after a delay: Home Assistant needs some time to remove an entity, and would report
// an empty message to it as invalid. No I/O.

import Protocols

struct TopicClearing {
  private static let delay: Nanoseconds = 5 * .second

  /// The topics to clear, with the time.
  private var pending: [String: Instant] = [:]

  /// Clears topics some seconds after this time.
  mutating func clear(_ topics: [String], at now: Instant) {
    for topic in topics { pending[topic] = now + Self.delay }
  }

  /// Cancels the clearing of topics on which these messages are published.
  mutating func published(_ messages: [OutgoingMessage]) {
    guard !pending.isEmpty else { return }
    for message in messages { pending[message.topic] = nil }
  }

  /// When the next topic is to be cleared.
  var due: Instant? { pending.values.min() }

  /// Returns the messages that are due.
  mutating func messages(at now: Instant) -> [OutgoingMessage] {
    let topics = pending.filter { $0.value <= now }.keys.sorted()
    for topic in topics { pending[topic] = nil }
    return topics.map { .state($0, "") }
  }
}
