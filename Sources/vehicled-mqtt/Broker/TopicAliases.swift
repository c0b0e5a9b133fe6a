// Topic aliases: numbers that replace topics on a connection. A topic that is published again and again then takes two bytes instead of 30
// to 60. No I/O.

struct TopicAliases {
  /// The number of topics to remember before they have aliases.
  private static let maxSeen = 10_000

  private let limit: Int
  private var numbers: [String: Int] = [:]
  /// The highest number in use.
  private var last = 0
  /// The topics that were published once.
  private var seen: Set<String> = []

  /// Starts without aliases. `limit` is the highest number that the broker accepts, 0 for none.
  init(limit: Int) { self.limit = limit }

  /// Returns the alias of a topic that is being published. A topic gets one when it is published for the second time, if there is one left.
  /// If it `isNew`, the message must also have the topic.
  mutating func alias(of topic: String) -> (number: Int, isNew: Bool)? {
    if let known = numbers[topic] { return (known, false) }
    if seen.count == Self.maxSeen { seen = [] }
    guard last < limit, !seen.insert(topic).inserted else { return nil }
    last += 1
    numbers[topic] = last
    if last == limit { seen = [] }
    return (last, true)
  }

  /// Forgets the alias of a topic that could not be published, because the broker does not know it.
  mutating func failed(_ topic: String) { numbers[topic] = nil }
}
