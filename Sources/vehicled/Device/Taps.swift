// Everybody who listens in on a device's links: `vehiclectl record`, and the file that `record = true` keeps. Costs
// nothing while nobody does. A secret message shows only its length.

import Protocols

@Loop final class Taps {
  /// One listener. Times in its lines count from when it began.
  final class Tap {
    fileprivate let began = Clock.monotonic()
    fileprivate let take: @Loop (String) -> Void
    fileprivate let ended: @Loop () -> Void

    fileprivate init(_ take: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void) {
      self.take = take
      self.ended = ended
    }
  }

  private var taps: [Tap] = []

  var isEmpty: Bool { taps.isEmpty }

  /// Begins to hand every line of a recording to `take`, without newlines.
  /// `ended` is told when the device goes away before the tap is removed.
  func add(_ take: @escaping @Loop (String) -> Void, ended: @escaping @Loop () -> Void = {}) -> Tap {
    let tap = Tap(take, ended: ended)
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
    for tap in taps {
      let t = now - tap.began
      tap.take(
        secret
          ? Recording.text(t, link: link.description, direction, note: "secret: \(bytes.count) bytes")
          : Recording.text(t, link: link.description, direction, bytes: bytes))
    }
  }

  func note(_ link: LinkName, _ text: String) {
    let now = Clock.monotonic()
    for tap in taps { tap.take(Recording.text(now - tap.began, link: link.description, .state, note: text)) }
  }
}
