// The signals of a bus by identifier, with their last bits. A frame publishes the values that changed; unchanged ones are published again
// once per second, so that clients see their age. When messages stop, their values are withdrawn. Nothing is allocated for a frame.

struct CANSignalTable: Sendable {
  /// What was published of a signal.
  private enum Published: Sendable, Equatable {
    case nothing, tooShort
    case bits(CANValueReader.Bits)
  }

  private struct Entry: Sendable {
    let property: Int
    let reader: CANValueReader
    var published = Published.nothing
  }

  /// Signals of one message that frames contain together.
  private struct Group: Sendable {
    let conditions: [CANCondition]
    let lifetime: Nanoseconds?
    let entries: Range<Int>
    /// Why there are no values before the first frame, after messages have stopped, and in a frame that is too short.
    let unseen, stopped, tooShort: String
    /// The last frame.
    var word: UInt64 = 0
    var count = -1
    /// When the values expire; nil if there are none.
    var expiry: Instant?
    /// When all values were published last.
    var published: Instant = .min
  }

  private static let republishInterval: Nanoseconds = .second

  private var entries: [Entry] = []
  private var groups: [Group] = []
  private var messages: [CANIdentifier: Range<Int>] = [:]
  /// When `expire` must be called; nil if nothing can expire. It can be earlier than the first expiry.
  private(set) var nextExpiry: Instant?

  /// The identifiers of the signals' messages.
  var identifiers: some Collection<CANIdentifier> { messages.keys }

  /// Creates a table of signals, which are the properties from `firstProperty` on, in this order.
  init(_ signals: [CANSignal], firstProperty: Int) {
    struct Key: Hashable {
      let conditions: [CANCondition]
      let lifetime: Nanoseconds?
    }
    let numbered = signals.enumerated().map { (property: firstProperty + $0.offset, signal: $0.element) }
    for (identifier, members) in Dictionary(grouping: numbered, by: \.signal.identifier) {
      let parts = Dictionary(grouping: members) { Key(conditions: $0.signal.conditions, lifetime: $0.signal.lifetime) }
      // A message with a multiplexer contains only some of its signals each time.
      let variants = Int64(max(1, Set(members.map(\.signal.conditions)).count { !$0.isEmpty }))
      let first = groups.count
      for (key, part) in parts {
        let lifetime = key.lifetime.map { key.conditions.isEmpty ? $0 : $0 * variants }
        let name = "frame \(identifier.text)" + (key.conditions.isEmpty ? "" : " with this signal")
        let time = lifetime.map { Value.text((Double($0) / 1e8).rounded() / 10) } ?? ""
        groups.append(
          Group(
            conditions: key.conditions, lifetime: lifetime, entries: entries.count..<entries.count + part.count,
            unseen: "no \(name) received yet", stopped: "no \(name) for \(time) s", tooShort: "frame \(identifier.text) is too short"))
        entries += part.map { Entry(property: $0.property, reader: $0.signal.reader) }
      }
      messages[identifier] = first..<groups.count
    }
  }

  /// Declares how long a published value is valid without another one: the lifetime of the message, and the interval in which an unchanged
  /// value is not published again.
  func declareLifetimes(_ properties: inout [Property]) {
    for group in groups {
      guard let lifetime = group.lifetime else { continue }
      for entry in entries[group.entries] { properties[entry.property].lifetime = .fresh(lifetime + Self.republishInterval) }
    }
  }

  /// Withdraws all values that are not kept, because frames can be received only from now on.
  mutating func reset(_ effects: inout Effects) {
    nextExpiry = nil
    for index in groups.indices {
      (groups[index].count, groups[index].expiry, groups[index].published) = (-1, nil, .min)
      for entry in groups[index].entries {
        guard groups[index].lifetime != nil || entries[entry].published == .nothing else { continue }
        effects.withdraw(entries[entry].property, groups[index].unseen)
        entries[entry].published = .nothing
      }
    }
  }

  /// Publishes the values in a data frame that changed.
  mutating func receive(_ frame: CANFrame, at now: Instant, _ effects: inout Effects) {
    guard let range = messages[frame.identifier] else { return }
    let (word, count) = (frame.packed, frame.count)
    for index in range where groups[index].conditions.allSatisfy({ $0.isMet(by: word, count: count) }) {
      if let lifetime = groups[index].lifetime {
        let expiry = now &+ lifetime
        groups[index].expiry = expiry
        if nextExpiry.map({ expiry < $0 }) ?? true { nextExpiry = expiry }
      }
      let publishesAll = groups[index].published == .min || now &- groups[index].published >= Self.republishInterval
      if publishesAll {
        groups[index].published = now
      } else if groups[index].word == word, groups[index].count == count {
        continue
      }
      (groups[index].word, groups[index].count) = (word, count)
      for entry in groups[index].entries { publish(entry, word, count, always: publishesAll, groups[index].tooShort, &effects) }
    }
  }

  private mutating func publish(
    _ index: Int, _ word: UInt64, _ count: Int, always: Bool, _ tooShort: String, _ effects: inout Effects
  ) {
    guard count >= entries[index].reader.minCount else {
      if entries[index].published != .tooShort { effects.withdraw(entries[index].property, tooShort) }
      entries[index].published = .tooShort
      return
    }
    let bits = entries[index].reader.bits(in: word)
    guard always || entries[index].published != .bits(bits) else { return }
    entries[index].published = .bits(bits)
    switch entries[index].reader.content(bits) {
    case .value(let value): effects.publish(entries[index].property, value)
    case .absent(let reason): effects.withdraw(entries[index].property, reason)
    }
  }

  /// Withdraws the values whose messages have stopped.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    guard let nextExpiry, now >= nextExpiry else { return }
    self.nextExpiry = nil
    for index in groups.indices {
      guard let expiry = groups[index].expiry else { continue }
      guard now >= expiry else {
        self.nextExpiry = min(self.nextExpiry ?? .max, expiry)
        continue
      }
      (groups[index].expiry, groups[index].published) = (nil, .min)
      for entry in groups[index].entries {
        effects.withdraw(entries[entry].property, groups[index].stopped)
        entries[entry].published = .nothing
      }
    }
  }
}
