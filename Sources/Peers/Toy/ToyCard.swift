// The persistent state of a toy: the files of its SD card, and the network stored in its Wi-Fi chip. Invalid files count as absent.
// Facts: protocols of the toy, §C (files p, w, s, d, u; a ring of 500 facts; it ships with 500) and §A (the Wi-Fi chip).

import Protocols

/// The SD card of a running toy.
struct ToyCard: Sendable, Equatable {
  /// The size of the ring of facts, and the maximum of the counters.
  static let ring = 500
  private static let maxFileSize = 1024

  /// The slot that is spoken next, and the slot that is written next: 0 ..< 500.
  private(set) var next = 0
  private(set) var free = 0
  /// Plays that are not reported to the server yet, and facts to download for them: 0 ... 500.
  private(set) var unreported = 0
  private(set) var owed = 0
  /// The user number from the phone; empty for none.
  private(set) var user = ""
  /// Downloaded facts by slot; the other slots have the shipped facts.
  private(set) var facts: [Int: [UInt8]] = [:]
  /// The network that the Wi-Fi chip joins automatically.
  private(set) var remembered: ReceivedCredentials?

  /// Creates a card from its files; without them, the card of a new toy with this user.
  init(_ files: [String: [UInt8]], user: String) {
    func number(_ name: String, _ range: ClosedRange<Int>) -> Int {
      guard let value = files[name].flatMap({ Int(Self.text($0)) }), range.contains(value) else { return 0 }
      return value
    }
    next = number("p.txt", 0...Self.ring - 1)
    free = number("w.txt", 0...Self.ring - 1)
    unreported = number("s.txt", 0...Self.ring)
    owed = number("d.txt", 0...Self.ring)
    self.user = files["u.txt"].map(Self.text) ?? user
    for slot in 0..<Self.ring { facts[slot] = files["\(slot).txt"].map { Array($0.prefix(Self.maxFileSize)) } }
    if let lines = files["esp8266.txt"]?.split(separator: 0x0A, omittingEmptySubsequences: false), lines.count == 2 {
      remembered = ReceivedCredentials(user: [], network: Array(lines[0]), password: Array(lines[1]))
    }
  }

  private static func text(_ bytes: [UInt8]) -> String {
    let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x0A || byte == 0x0D }
    let kept = bytes.prefix(128).drop(while: isBlank).reversed().drop(while: isBlank).reversed()
    return String(decoding: kept, as: UTF8.self)
  }

  /// Returns the next fact and its slot, and advances.
  mutating func play(_ effects: inout Effects) -> (slot: Int, text: String) {
    let slot = next
    next = (next + 1) % Self.ring
    effects.append(.store(key: "p.txt", Array(String(next).utf8)))
    let text = facts[slot].map { String(decoding: $0, as: UTF8.self) } ?? Self.shipped[slot % Self.shipped.count]
    return (slot, text)
  }

  /// Stores a fact in place of the oldest one, and returns its slot.
  mutating func store(_ fact: [UInt8], _ effects: inout Effects) -> Int {
    let slot = free
    facts[slot] = fact
    free = (free + 1) % Self.ring
    effects.append(.store(key: "\(slot).txt", fact))
    effects.append(.store(key: "w.txt", Array(String(free).utf8)))
    return slot
  }

  /// Counts a play that is not reported to the server.
  mutating func countUnreported(_ effects: inout Effects) {
    count(unreported: min(Self.ring, unreported + 1), owed: min(Self.ring, owed + 1), &effects)
  }

  /// Subtracts reported plays.
  mutating func reported(_ plays: Int, _ effects: inout Effects) { count(unreported: max(0, unreported - plays), owed: owed, &effects) }

  /// Subtracts a downloaded fact.
  mutating func fetched(_ effects: inout Effects) { count(unreported: unreported, owed: max(0, owed - 1), &effects) }

  private mutating func count(unreported: Int, owed: Int, _ effects: inout Effects) {
    if unreported != self.unreported { effects.append(.store(key: "s.txt", Array(String(unreported).utf8))) }
    if owed != self.owed { effects.append(.store(key: "d.txt", Array(String(owed).utf8))) }
    (self.unreported, self.owed) = (unreported, owed)
  }

  /// Sets the user, effective from the next start.
  mutating func setUser(_ user: [UInt8], _ effects: inout Effects) {
    self.user = String(decoding: user, as: UTF8.self)
    effects.append(.store(key: "u.txt", user))
  }

  /// Stores the network in the Wi-Fi chip.
  mutating func remember(_ credentials: ReceivedCredentials, _ effects: inout Effects) {
    remembered = credentials
    effects.append(.store(key: "esp8266.txt", credentials.network + [0x0A] + credentials.password))
  }

  private static let shipped = [
    "A day on Venus is longer than its year.", "Octopuses have three hearts.", "Bananas are berries, and strawberries are not.",
    "The shortest war lasted less than an hour.", "Sharks are older than trees.", "Sea otters hold hands while they sleep.",
    "A teaspoon of a neutron star weighs billions of tons.", "Wombats leave cubes behind.",
  ]
}
