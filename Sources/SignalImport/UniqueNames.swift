// Makes unique property names of lower-case letters, digits and dashes from the names of other programs.

import Protocols

struct UniqueNames {
  /// The names of the kind's own properties, which signals cannot have.
  let reserved: Set<String>
  private var names: Set<String> = []
  /// The number in the last suffix of each duplicate name.
  private var suffixes: [String: Int] = [:]

  init(reserved: Set<String>) { self.reserved = reserved }

  /// Returns a name that is neither in use nor reserved. With `splitsWords`, `BatteryTemp` becomes `battery-temp`.
  mutating func name(from id: String, splitsWords: Bool = false) -> String {
    var letters: [UInt8] = []
    var last: UInt8 = 0
    for byte in id.utf8.prefix(400) {
      let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      if isLetter(byte) || (isDigit(byte) && !letters.isEmpty) {
        let wasLower = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(last) || isDigit(last)
        if splitsWords, isCapital, wasLower { letters.append(UInt8(ascii: "-")) }
        letters.append(isDigit(byte) ? byte : byte | 0x20)
      } else if let last = letters.last, last != UInt8(ascii: "-") {
        letters.append(UInt8(ascii: "-"))
      }
      last = byte
    }
    func name(endingWith suffix: String) -> String {
      var stem = letters.prefix(SignalRules.maxNameLength - suffix.utf8.count)
      while stem.last == UInt8(ascii: "-") { stem.removeLast() }
      return (stem.isEmpty ? "signal" : String(decoding: stem, as: UTF8.self)) + suffix
    }
    if reserved.contains(name(endingWith: "")) { letters = Array("own-".utf8) + letters }
    let first = name(endingWith: "")
    var unique = first
    while names.contains(unique) || reserved.contains(unique) {
      let number = suffixes[first, default: 1] + 1
      suffixes[first] = number
      unique = name(endingWith: "-\(number)")
    }
    return unique
  }

  /// Records that a name is in use.
  mutating func insert(_ name: String) { names.insert(name) }
}
