// Chance that repeats itself: the same seed gives the same run.

struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

extension [UInt8] {
  /// Changes, inserts, removes or doubles a few bytes somewhere.
  mutating func mutate(using random: inout SeededRandom) {
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
