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

    fileprivate init(from began: Instant, _ take: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void) {
      self.began = began
      self.take = take
      self.ended = ended
    }
  }

  /// The first messages that a link carried since it came up.
  private struct Opening {
    let began: Instant
    var bytes: [UInt8] = []
    var messages: [(at: Instant, direction: Recording.Direction, count: Int, secret: Bool)] = []
    var isFull = false
  }

  private var taps: [Tap] = []
  private var openings: [LinkName: Opening] = [:]
  /// Of the openings, how many still grow.
  private var growing = 0

  /// An adapter's setup takes about 40 messages and 500 bytes.
  private static let mostMessages = 96
  private static let mostBytes = 2048

  /// Nobody would take note of a message now.
  var isIdle: Bool { taps.isEmpty && growing == 0 }

  /// Begins to hand every line of a recording to `take`, without newlines: first, at once, what the links that are up
  /// carried since they came up, as far as it was kept. `ended` is told when the device goes away before the tap is removed.
  func add(_ take: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void = {}) -> Tap {
    let tap = Tap(from: openings.values.map(\.began).min() ?? Clock.monotonic(), take, ended: ended)
    var lines: [(at: Instant, text: String)] = []
    for (link, opening) in openings {
      lines.append((opening.began, Recording.text(opening.began - tap.began, link: link.description, .state, note: "up")))
      var rest = opening.bytes[...]
      for message in opening.messages {
        let bytes = Array(rest.prefix(message.secret ? 0 : message.count))
        rest = rest.dropFirst(bytes.count)
        lines.append((message.at, Self.text(message.at - tap.began, link, message.direction, bytes, message.count, message.secret)))
      }
    }
    // Stable: two messages of one moment keep their order.
    for line in lines.enumerated().sorted(by: { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }) { take(line.element.text) }
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
    for tap in taps { tap.take(Self.text(now - tap.began, link, direction, bytes, bytes.count, secret)) }
  }

  func linkCameUp(_ link: LinkName) {
    openings[link] = Opening(began: Clock.monotonic())
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
    if opening.messages.count == Self.mostMessages || opening.bytes.count + bytes.count > Self.mostBytes {
      opening.isFull = true
    } else {
      if !secret { opening.bytes += bytes }
      opening.messages.append((now, direction, bytes.count, secret))
    }
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
