// Everybody who listens in on a device's links: `vehiclectl record`, and the file that `record = true` keeps. What a link
// carried first is kept for those who come later: without the adapter's setup a recording could not be played back.
// Otherwise it costs nothing while nobody listens. A secret message shows only its length.

import Protocols

@Loop final class Taps {
  /// One listener. Times in its lines count from when the first of its messages was carried.
  final class Tap {
    fileprivate let began: Instant
    fileprivate let take: @Loop (String) -> Void
    fileprivate let ended: @Loop () -> Void
    /// Links whose messages are left out until we send: their opening ended with a whole exchange.
    fileprivate var skipped: Set<LinkName> = []

    fileprivate init(from began: Instant, _ take: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void) {
      self.began = began
      self.take = take
      self.ended = ended
    }
  }

  /// The first messages that a link carried since it came up, packed: there is one for each link.
  private struct Opening {
    let began: Instant
    /// For each message: microseconds since `began` (4 bytes), its length (2), direction and secrecy (1), then its bytes,
    /// unless it is secret.
    private var packed: [UInt8] = []
    /// Where the last message that we sent begins.
    private var lastSent = 0
    private(set) var isFull = false

    init(at began: Instant) { self.began = began }

    mutating func append(_ direction: Recording.Direction, _ bytes: [UInt8], secret: Bool, at now: Instant) {
      let age = UInt32(clamping: (now - began) / .microsecond)
      guard packed.count + Self.head + bytes.count <= Taps.maxBytes, age < .max else {
        // It ends with a whole exchange: half a reply would never be continued when it is played.
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

    /// The messages in order.
    func forEach(_ body: (_ at: Instant, Recording.Direction, [UInt8], _ count: Int, _ secret: Bool) -> Void) {
      var rest = packed[...]
      while rest.count >= Self.head {
        let head = Array(rest.prefix(Self.head))
        let age = head[..<4].reversed().reduce(0) { $0 << 8 | Int64($1) }
        let (count, isSecret) = (Int(head[4]) | Int(head[5]) << 8, head[6] & 2 != 0)
        let bytes = Array(rest.dropFirst(Self.head).prefix(isSecret ? 0 : count))
        rest = rest.dropFirst(Self.head + bytes.count)
        body(began + age * .microsecond, head[6] & 1 != 0 ? .sent : .received, bytes, count, isSecret)
      }
    }

    private static let head = 7
  }

  private var taps: [Tap] = []
  private var openings: [LinkName: Opening] = [:]
  /// Of the openings, how many still grow.
  private var growing = 0

  /// An adapter's setup takes about 40 messages and 500 bytes, each message 7 more.
  private nonisolated static let maxBytes = 1024

  /// Nobody would take note of a message now.
  var isIdle: Bool { taps.isEmpty && growing == 0 }

  /// Begins to hand every line of a recording to `take`, without newlines: first, at once, what the links that are up
  /// carried since they came up, as far as it was kept. `ended` is told when the device goes away before the tap is removed.
  func add(_ take: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void = {}) -> Tap {
    let tap = Tap(from: openings.values.map(\.began).min() ?? Clock.monotonic(), take, ended: ended)
    var lines: [(at: Instant, text: String)] = []
    for (link, opening) in openings {
      lines.append((opening.began, Recording.text(opening.began - tap.began, link: link.description, .state, note: "up")))
      opening.forEach { at, direction, bytes, count, secret in
        lines.append((at, Self.text(at - tap.began, link, direction, bytes, count, secret)))
      }
    }
    // Stable: two messages of one moment keep their order.
    for line in lines.enumerated().sorted(by: { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }) { take(line.element.text) }
    tap.skipped = Set(openings.keys)
    taps.append(tap)
    return tap
  }

  func remove(_ tap: Tap) { taps.removeAll { $0 === tap } }

  /// The device is gone.
  func end() {
    let ending = taps
    taps = []
    for tap in ending { tap.ended() }
  }

  func record(_ direction: Recording.Direction, _ link: LinkName, _ bytes: [UInt8], secret: Bool = false) {
    let now = Clock.monotonic()
    if growing > 0 { keep(direction, link, bytes, secret, now) }
    for tap in taps {
      if direction == .sent { tap.skipped.remove(link) }
      if tap.skipped.contains(link) { continue }
      tap.take(Self.text(now - tap.began, link, direction, bytes, bytes.count, secret))
    }
  }

  func linkCameUp(_ link: LinkName) {
    openings[link] = Opening(at: Clock.monotonic())
    count()
    note(link, "up")
  }

  func linkWentDown(_ link: LinkName, _ reason: String) {
    openings[link] = nil
    count()
    note(link, "down: \(reason)")
  }

  private func note(_ link: LinkName, _ text: String) {
    let now = Clock.monotonic()
    for tap in taps { tap.take(Recording.text(now - tap.began, link: link.description, .state, note: text)) }
  }

  private func keep(_ direction: Recording.Direction, _ link: LinkName, _ bytes: [UInt8], _ secret: Bool, _ now: Instant) {
    guard var opening = openings[link], !opening.isFull else { return }
    openings[link] = nil
    opening.append(direction, bytes, secret: secret, at: now)
    openings[link] = opening
    if opening.isFull { count() }
  }

  private func count() { growing = openings.values.count { !$0.isFull } }

  private static func text(
    _ t: Int64, _ link: LinkName, _ direction: Recording.Direction, _ bytes: [UInt8], _ count: Int, _ secret: Bool
  ) -> String {
    secret
      ? Recording.text(t, link: link.description, direction, note: "secret: \(count) bytes")
      : Recording.text(t, link: link.description, direction, bytes: bytes)
  }
}
