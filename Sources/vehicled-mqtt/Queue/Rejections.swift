// The topics that the broker rejects, and why: what the journal and the state of the service say about it. No I/O.

struct Rejections {
  /// What is rejected, by topic.
  private var texts: [String: String] = [:]
  /// The kinds of rejection that were reported since the connection was opened.
  private var reported: Set<String> = []

  /// One of them with its remedy, and the number of others; nil without any.
  var summary: String? {
    guard let topic = texts.keys.min(), let text = texts[topic] else { return nil }
    return texts.count == 1 ? text : "\(text) (and \(texts.count - 1) more)"
  }

  /// Adds a rejection. Returns whether it is the first of its kind, which is worth a line in the journal: it can concern many topics.
  mutating func add(_ topic: String, _ text: String, kind: String) -> Bool {
    texts[topic] = text
    return reported.insert(kind).inserted
  }

  /// Removes the rejection of a topic, because the broker has accepted a message. Returns whether it was the last one.
  mutating func accepted(_ topic: String) -> Bool {
    guard texts.removeValue(forKey: topic) != nil, texts.isEmpty else { return false }
    reported = []
    return true
  }
}
