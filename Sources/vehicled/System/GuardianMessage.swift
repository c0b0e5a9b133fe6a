// What the daemon and its guardian say to each other, a packet each, over a pair of sockets. Both are the same program of
// the same version: the bytes are nobody else's.

import Protocols

/// A packet from the daemon to its guardian.
enum GuardianMessage: Equatable {
  /// Executes this will over the descriptor that comes with it, should it come to that.
  case keep(ward: UInt16, Will)
  /// Somebody drives: unless something is heard of the ward within so many milliseconds, the daemon counts as frozen.
  case beat(ward: UInt16, milliseconds: UInt16)
  /// Nobody drives any more.
  case rest(ward: UInt16)
  /// Close the descriptor and forget the will.
  case release(ward: UInt16)

  /// The longest packet: a will of 32 messages.
  static let longest = 40_000

  /// Reads a packet; nil where it is none.
  init?(_ packet: some Collection<UInt8>) {
    var rest = Array(packet)[...]
    func number() -> Int? {
      guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
      return Int(high) << 8 | Int(low)
    }
    func messages() -> [Will.Message]? {
      guard let count = number() else { return nil }
      var messages: [Will.Message] = []
      for _ in 0..<count {
        guard let pause = number(), let length = number(), rest.count >= length else { return nil }
        messages.append(Will.Message(Array(rest.prefix(length)), after: Int64(pause) * .millisecond))
        rest = rest.dropFirst(length)
      }
      return messages
    }
    guard let kind = rest.popFirst(), let ward = number().map(UInt16.init) else { return nil }
    switch kind {
    case UInt8(ascii: "k"):
      guard let dead = messages(), let frozen = messages() else { return nil }
      self = .keep(ward: ward, Will(dead: dead, frozen: frozen))
    case UInt8(ascii: "b"):
      guard let milliseconds = number() else { return nil }
      self = .beat(ward: ward, milliseconds: UInt16(milliseconds))
    case UInt8(ascii: "r"): self = .rest(ward: ward)
    case UInt8(ascii: "x"): self = .release(ward: ward)
    default: return nil
    }
  }

  var packet: [UInt8] {
    func number(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)] }
    func bytes(_ messages: [Will.Message]) -> [UInt8] {
      messages.reduce(into: number(messages.count)) { bytes, message in
        let pause = min(max(message.pause / .millisecond, 0), 0xFFFF)
        bytes += number(Int(pause)) + number(message.bytes.count) + message.bytes
      }
    }
    return switch self {
    case .keep(let ward, let will): [UInt8(ascii: "k")] + number(Int(ward)) + bytes(will.dead) + bytes(will.frozen)
    case .beat(let ward, let milliseconds): [UInt8(ascii: "b")] + number(Int(ward)) + number(Int(milliseconds))
    case .rest(let ward): [UInt8(ascii: "r")] + number(Int(ward))
    case .release(let ward): [UInt8(ascii: "x")] + number(Int(ward))
    }
  }
}
