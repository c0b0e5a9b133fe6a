// Random damage to bytes, reproducible by its seed.

@testable import Peers

extension [UInt8] {
  /// Changes, inserts, removes or duplicates bytes at a random position.
  mutating func mutate(using random: inout SeededRandom) {
    let place = Int.random(in: 0...count, using: &random)
    let special = Array("[]{}\"'=.#%?:&,\n\\ \u{0}\u{7F}".utf8) + [0x80, 0xFF, UInt8.random(in: 0...255, using: &random)]
    let byte = special[Int.random(in: 0..<special.count, using: &random)]
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
