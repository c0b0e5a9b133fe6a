// The protocol between the daemon and its guardian: one packet per message over a socket pair. Both ends are the same program, so the
// format has no version number.

import Protocols

/// A packet from the daemon to its guardian.
enum GuardianMessage: Equatable {
  /// Registers a link with its last-will frames. The packet carries the link's descriptor (SCM_RIGHTS).
  case register(link: UInt16, LastWill)
  /// The device is driven. If no further heartbeat arrives within this time, the daemon counts as frozen.
  case heartbeat(link: UInt16, milliseconds: UInt16)
  /// The device is no longer driven.
  case unwatch(link: UInt16)
  /// Closes the descriptor and removes the last-will frames.
  case release(link: UInt16)

  /// The first byte of a packet.
  private enum Kind {
    static let register = UInt8(ascii: "k")
    static let heartbeat = UInt8(ascii: "b")
    static let unwatch = UInt8(ascii: "r")
    static let release = UInt8(ascii: "x")
  }

  /// The maximum size of a packet in bytes, which has room for 32 last-will frames.
  static let maxSize = 40_000

  /// Parses a packet; nil if it is invalid.
  init?(_ packet: some Collection<UInt8>) {
    var rest = Array(packet)[...]
    func number() -> Int? {
      guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
      return Int(high) << 8 | Int(low)
    }
    func messages() -> [LastWill.Message]? {
      guard let count = number() else { return nil }
      var messages: [LastWill.Message] = []
      for _ in 0..<count {
        guard let pause = number(), let length = number(), rest.count >= length else { return nil }
        messages.append(LastWill.Message(Array(rest.prefix(length)), after: Int64(pause) * .millisecond))
        rest = rest.dropFirst(length)
      }
      return messages
    }
    guard let kind = rest.popFirst(), let link = number().map(UInt16.init) else { return nil }
    switch kind {
    case Kind.register:
      guard let dead = messages(), let frozen = messages() else { return nil }
      self = .register(link: link, LastWill(dead: dead, frozen: frozen))
    case Kind.heartbeat:
      guard let milliseconds = number() else { return nil }
      self = .heartbeat(link: link, milliseconds: UInt16(milliseconds))
    case Kind.unwatch: self = .unwatch(link: link)
    case Kind.release: self = .release(link: link)
    default: return nil
    }
  }

  var packet: [UInt8] {
    func number(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)] }
    func bytes(_ messages: [LastWill.Message]) -> [UInt8] {
      messages.reduce(into: number(messages.count)) { bytes, message in
        let pause = min(max(message.pause / .millisecond, 0), 0xFFFF)
        bytes += number(Int(pause)) + number(message.bytes.count) + message.bytes
      }
    }
    return switch self {
    case .register(let link, let will): [Kind.register] + number(Int(link)) + bytes(will.dead) + bytes(will.frozen)
    case .heartbeat(let link, let milliseconds): [Kind.heartbeat] + number(Int(link)) + number(Int(milliseconds))
    case .unwatch(let link): [Kind.unwatch] + number(Int(link))
    case .release(let link): [Kind.release] + number(Int(link))
    }
  }
}
