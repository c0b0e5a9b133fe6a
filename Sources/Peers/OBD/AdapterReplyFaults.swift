// What faults do to the bytes of a reply: noise, pieces, a half that is missing. It knows nothing of what they say.

import Protocols

extension ELM327Adapter {
  /// Breaks a reply off in the middle of a line, somewhere behind its half.
  func overflow(_ reply: inout [Piece], _ words: String) {
    guard let last = reply.popLast() else { return }
    keep(reply.reduce(0) { $0 + $1.bytes.count } * 2 / 3, of: &reply)
    if let piece = reply.indices.last { reply[piece].bytes = reply[piece].bytes.dropLast(settings.endOfLine.count + 1) }
    reply.append((last.due, Array(words.utf8) + settings.endOfLine + settings.prompt))
  }

  /// Puts one to six bytes of noise somewhere before the prompt.
  mutating func insertNoise(_ reply: inout [Piece]) {
    guard let piece = reply.indices.randomElement(using: &noise), !reply[piece].bytes.isEmpty else { return }
    let place = Int.random(in: 0..<reply[piece].bytes.count, using: &noise)
    let dirt = (0..<Int.random(in: 1...6, using: &noise)).map { _ in
      [0x00, 0xFF, UInt8.random(in: 0x80...0xFE, using: &noise)].randomElement(using: &noise) ?? 0
    }
    reply[piece].bytes.insert(contentsOf: dirt, at: place)
  }

  /// Leaves the first half.
  func cut(_ reply: inout [Piece]) { keep(reply.reduce(0) { $0 + $1.bytes.count } / 2, of: &reply) }

  /// Leaves so many bytes.
  private func keep(_ count: Int, of reply: inout [Piece]) {
    var rest = count
    for piece in reply.indices {
      reply[piece].bytes = Array(reply[piece].bytes.prefix(rest))
      rest -= reply[piece].bytes.count
    }
    reply.removeAll { $0.bytes.isEmpty }
  }

  /// The same bytes in pieces of 1 to 20, with gaps.
  mutating func splitRandomly(_ reply: [Piece], gap: Nanoseconds) -> [Piece] {
    var chopped: [Piece] = []
    var due = Instant.min
    for piece in reply {
      due = max(due, piece.due)
      var rest = piece.bytes[...]
      while !rest.isEmpty {
        let part = rest.prefix(Int.random(in: 1...20, using: &noise))
        chopped.append((due, Array(part)))
        rest = rest.dropFirst(part.count)
        due += Nanoseconds.random(in: 0...gap, using: &noise)
      }
    }
    return chopped
  }

  /// A kilobyte of anything but the prompt.
  mutating func noiseBurst() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(1024)
    while bytes.count < 1024 {
      let word = noise.next()
      for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift))) }
    }
    return bytes.map { $0 == 0x3E ? 0xFF : $0 }
  }
}
