// Faults that change the bytes of a reply: noise, splitting, truncation.

import Protocols

extension ELM327Adapter {
  /// Cuts a reply off in the middle of a line, after about two thirds, and appends `text` and the prompt.
  func truncateWithOverflow(_ reply: inout [TimedOutput], _ text: String) {
    guard let last = reply.popLast() else { return }
    truncate(reply.reduce(0) { $0 + $1.bytes.count } * 2 / 3, of: &reply)
    if let piece = reply.indices.last { reply[piece].bytes = reply[piece].bytes.dropLast(settings.endOfLine.count + 1) }
    reply.append((last.due, Array(text.utf8) + settings.endOfLine + settings.prompt))
  }

  /// Inserts one to six random bytes at a random position before the prompt.
  mutating func insertNoise(_ reply: inout [TimedOutput]) {
    guard let piece = reply.indices.randomElement(using: &random), !reply[piece].bytes.isEmpty else { return }
    let position = Int.random(in: 0..<reply[piece].bytes.count, using: &random)
    let noise = (0..<Int.random(in: 1...6, using: &random)).map { _ in
      [0x00, 0xFF, UInt8.random(in: 0x80...0xFE, using: &random)].randomElement(using: &random) ?? 0
    }
    reply[piece].bytes.insert(contentsOf: noise, at: position)
  }

  /// Removes all but the first half of the bytes.
  func truncateToHalf(_ reply: inout [TimedOutput]) { truncate(reply.reduce(0) { $0 + $1.bytes.count } / 2, of: &reply) }

  /// Removes all but the first `count` bytes.
  private func truncate(_ count: Int, of reply: inout [TimedOutput]) {
    var rest = count
    for piece in reply.indices {
      reply[piece].bytes = Array(reply[piece].bytes.prefix(rest))
      rest -= reply[piece].bytes.count
    }
    reply.removeAll { $0.bytes.isEmpty }
  }

  /// Splits a reply into pieces of 1 to 20 bytes with gaps of up to `gap`.
  mutating func splitRandomly(_ reply: [TimedOutput], gap: Nanoseconds) -> [TimedOutput] {
    var parts: [TimedOutput] = []
    var due = Instant.min
    for piece in reply {
      due = max(due, piece.due)
      var rest = piece.bytes[...]
      while !rest.isEmpty {
        let part = rest.prefix(Int.random(in: 1...20, using: &random))
        parts.append((due, Array(part)))
        rest = rest.dropFirst(part.count)
        due += Nanoseconds.random(in: 0...gap, using: &random)
      }
    }
    return parts
  }

  /// 1 KiB of random bytes without a prompt.
  mutating func randomBurst() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(1024)
    while bytes.count < 1024 {
      let word = random.next()
      for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift))) }
    }
    return bytes.map { $0 == 0x3E ? 0xFF : $0 }
  }
}
