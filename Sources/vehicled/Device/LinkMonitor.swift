// The subscribers to the traffic of a device's links: `vehiclectl record` and the recorder of `record = true`. The first
// messages of a link (its opening) are stored for later subscribers, because a recording cannot be replayed without the adapter's setup.
// Later messages are not stored. For a secret message, only the length is recorded.

import Protocols
import Varlink

@Loop final class LinkMonitor {
  /// One subscriber. The times in its lines count from `began`.
  final class Subscription {
    fileprivate let began: Instant
    fileprivate let receive: @Loop (String) -> Void
    fileprivate let ended: @Loop () -> Void
    /// Links whose messages are skipped until the daemon sends the next message. Their stored opening ends with a complete exchange, and
    /// must not be followed by part of a reply.
    fileprivate var skipped: Set<LinkName> = []

    fileprivate init(from began: Instant, _ receive: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void) {
      self.began = began
      self.receive = receive
      self.ended = ended
    }
  }

  /// The first messages of a link since it came up, packed.
  private struct Opening {
    let began: Instant
    /// For each message: µs since `began` (4 bytes), length (2), direction and secrecy (1), then its bytes, unless it is
    /// secret.
    private var packed: [UInt8] = []
    /// The offset of the last sent message.
    private var lastSent = 0
    private(set) var isFull = false

    init(at began: Instant) {
      self.began = began
      packed.reserveCapacity(LinkMonitor.maxBytes)
    }

    mutating func append(_ direction: Recording.Direction, _ bytes: [UInt8], secret: Bool, at now: Instant) {
      let age = UInt32(clamping: (now - began) / .microsecond)
      guard packed.count + Self.headerSize + bytes.count <= LinkMonitor.maxBytes, age < .max else {
        // Drops the last exchange, which may be incomplete: a replay cannot resume in the middle of a reply.
        packed.removeSubrange(lastSent...)
        return isFull = true
      }
      if direction == .sent { lastSent = packed.count }
      for shift in stride(from: 0, to: 32, by: 8) { packed.append(UInt8(truncatingIfNeeded: age >> UInt32(shift))) }
      packed.append(UInt8(truncatingIfNeeded: bytes.count))
      packed.append(UInt8(truncatingIfNeeded: bytes.count >> 8))
      packed.append((direction == .sent ? 1 : 0) | (secret ? 2 : 0))
      if !secret { packed.append(contentsOf: bytes) }
    }

    /// Calls `body` for each message in order.
    func forEach(_ body: (_ at: Instant, Recording.Direction, [UInt8], _ count: Int, _ secret: Bool) -> Void) {
      var rest = packed[...]
      while rest.count >= Self.headerSize {
        let header = Array(rest.prefix(Self.headerSize))
        let age = header[..<4].reversed().reduce(0) { $0 << 8 | Int64($1) }
        let (count, isSecret) = (Int(header[4]) | Int(header[5]) << 8, header[6] & 2 != 0)
        let bytes = Array(rest.dropFirst(Self.headerSize).prefix(isSecret ? 0 : count))
        rest = rest.dropFirst(Self.headerSize + bytes.count)
        body(began + age * .microsecond, header[6] & 1 != 0 ? .sent : .received, bytes, count, isSecret)
      }
    }

    private static let headerSize = 7
  }

  private var subscriptions: [Subscription] = []
  private var openings: [LinkName: Opening] = [:]
  /// The number of openings that are not full.
  private var unfilledOpenings = 0
  /// The time of the last message or change of a state.
  private var lastTime: Instant = 0

  /// The size of an opening. An adapter's setup takes about 40 messages of 500 bytes in all, plus 7 bytes per message.
  private nonisolated static let maxBytes = 1024

  /// Whether calls to `record` have no effect now: there are no subscribers, and all openings are full.
  var isIdle: Bool { subscriptions.isEmpty && unfilledOpenings == 0 }

  /// When a recording that is requested now begins: with the first stored opening.
  var start: Instant { openings.values.map(\.began).min() ?? time() }

  /// Subscribes. `receive` gets every line of a recording, without newline, starting with the stored openings of the links that are
  /// up. The times in the lines count from `start`. `ended` is called if the device is removed before the subscription is removed.
  func add(
    from start: Instant? = nil, _ receive: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void = {}
  ) -> Subscription {
    let subscription = Subscription(from: start ?? self.start, receive, ended: ended)
    var lines: [(at: Instant, text: String)] = []
    for (link, opening) in openings {
      lines.append((opening.began, Recording.text(opening.began - subscription.began, link: link.description, .state, note: "up")))
      opening.forEach { at, direction, bytes, count, secret in
        lines.append((at, Self.text(at - subscription.began, link, direction, bytes, count, secret)))
      }
    }
    // A stable sort: messages with the same time keep their order.
    for line in lines.enumerated().sorted(by: { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }) { receive(line.element.text) }
    subscription.skipped = Set(openings.keys)
    subscriptions.append(subscription)
    return subscription
  }

  func remove(_ subscription: Subscription) { subscriptions.removeAll { $0 === subscription } }

  /// Ends all subscriptions because the device is removed.
  func end() {
    let ending = subscriptions
    subscriptions = []
    for subscription in ending { subscription.ended() }
  }

  /// Passes a message on to the subscribers. `time` is when it was received, if that is known better than by the current time.
  func record(_ direction: Recording.Direction, _ link: LinkName, _ bytes: [UInt8], secret: Bool = false, at time: Instant? = nil) {
    let now = self.time(time)
    if unfilledOpenings > 0 { store(direction, link, bytes, secret, now) }
    for subscription in subscriptions {
      if direction == .sent { subscription.skipped.remove(link) }
      if subscription.skipped.contains(link) { continue }
      subscription.receive(Self.text(now - subscription.began, link, direction, bytes, bytes.count, secret))
    }
  }

  /// `onlyReceives`: whether the daemon sends nothing on which received messages depend. Such a link has no opening.
  func linkCameUp(_ link: LinkName, onlyReceives: Bool = false) {
    openings[link] = onlyReceives ? nil : Opening(at: time())
    countUnfilledOpenings()
    recordState(link, "up")
  }

  func linkWentDown(_ link: LinkName, _ reason: String) {
    openings[link] = nil
    countUnfilledOpenings()
    recordState(link, "down: \(reason)")
  }

  private func recordState(_ link: LinkName, _ text: String) {
    let now = time()
    for subscription in subscriptions {
      subscription.receive(Recording.text(now - subscription.began, link: link.description, .state, note: text))
    }
  }

  /// The time of a line. It does not decrease: a frame can have been received before the previous line was recorded.
  private func time(_ time: Instant? = nil) -> Instant {
    lastTime = max(lastTime, time ?? Clock.monotonic())
    return lastTime
  }

  private func store(_ direction: Recording.Direction, _ link: LinkName, _ bytes: [UInt8], _ secret: Bool, _ now: Instant) {
    guard var opening = openings[link], !opening.isFull else { return }
    openings[link] = nil
    opening.append(direction, bytes, secret: secret, at: now)
    openings[link] = opening
    if opening.isFull { countUnfilledOpenings() }
  }

  private func countUnfilledOpenings() { unfilledOpenings = openings.values.count { !$0.isFull } }

  private static func text(
    _ t: Int64, _ link: LinkName, _ direction: Recording.Direction, _ bytes: [UInt8], _ count: Int, _ secret: Bool
  ) -> String {
    secret
      ? Recording.text(t, link: link.description, direction, note: "secret: \(count) bytes")
      : Recording.text(t, link: link.description, direction, bytes: bytes)
  }
}
