// Bytes that somebody damaged, the same way each time.

@testable import Peers

extension [UInt8] {
  /// Changes, inserts, removes or doubles a few bytes somewhere.
  mutating func mutate(using random: inout Noise) {
    let place = Int.random(in: 0...count, using: &random)
    let telling = Array("[]{}\"'=.#%?:&,\n\\ \u{0}\u{7F}".utf8) + [0x80, 0xFF, UInt8.random(in: 0...255, using: &random)]
    let byte = telling[Int.random(in: 0..<telling.count, using: &random)]
    switch UInt8.random(in: 0..<4, using: &random) {
    case 0 where place < count: self[place] = byte
    case 1 where place < count: remove(at: place)
    case 2 where place < count:
      let end = Swift.min(count, place + Int.random(in: 1...40, using: &random))
      insert(contentsOf: self[place..<end], at: Int.random(in: 0...count, using: &random))
    default: insert(byte, at: place)
    }
  }
}
