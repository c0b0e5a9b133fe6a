// What a toy keeps: its SD card's little files, and the network that its Wi-Fi chip remembers by itself. A file that is not
// what the toy writes counts as absent. It must never hold more than the card's ring of facts.
// Facts: protocols of the toy, §C (files p, w, s, d, u; a ring of 500 facts; it ships with 500) and §A (the chip remembers).

import Protocols

/// The card, as it is while the toy runs.
struct ToyCard: Sendable, Equatable {
  /// As many facts as the ring holds, and as much as its counters count.
  static let ring = 500
  private static let maxFileSize = 1024

  /// The fact that is spoken next, and the slot that the next one is written to: 0 ..< 500.
  private(set) var next = 0
  private(set) var free = 0
  /// Plays that the server was not told of, and facts that were not fetched for them: 0 ... 500.
  private(set) var unreported = 0
  private(set) var owed = 0
  /// The user that the phone gave; empty: none.
  private(set) var user = ""
  /// Facts that were fetched, by slot; the others are those it shipped with.
  private(set) var facts: [Int: [UInt8]] = [:]
  /// Name and password that the chip joins by itself.
  private(set) var remembered: ReceivedCredentials?

  /// What was kept, or a new toy's for this user.
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

  /// The fact that a throw plays, and its slot; the next throw plays the next one.
  mutating func play(_ effects: inout Effects) -> (slot: Int, text: String) {
    let slot = next
    next = (next + 1) % Self.ring
    effects.append(.store(key: "p.txt", Array(String(next).utf8)))
    let text = facts[slot].map { String(decoding: $0, as: UTF8.self) } ?? Self.shipped[slot % Self.shipped.count]
    return (slot, text)
  }

  /// Keeps a fact where the oldest one was; the slot.
  mutating func keep(_ fact: [UInt8], _ effects: inout Effects) -> Int {
    let slot = free
    facts[slot] = fact
    free = (free + 1) % Self.ring
    effects.append(.store(key: "\(slot).txt", fact))
    effects.append(.store(key: "w.txt", Array(String(free).utf8)))
    return slot
  }

  /// A play of which the server does not know.
  mutating func owe(_ effects: inout Effects) {
    count(unreported: min(Self.ring, unreported + 1), owed: min(Self.ring, owed + 1), &effects)
  }

  /// The server was told of so many plays.
  mutating func reported(_ plays: Int, _ effects: inout Effects) { count(unreported: max(0, unreported - plays), owed: owed, &effects) }

  /// A fact that was owed is there.
  mutating func fetched(_ effects: inout Effects) { count(unreported: unreported, owed: max(0, owed - 1), &effects) }

  private mutating func count(unreported: Int, owed: Int, _ effects: inout Effects) {
    if unreported != self.unreported { effects.append(.store(key: "s.txt", Array(String(unreported).utf8))) }
    if owed != self.owed { effects.append(.store(key: "d.txt", Array(String(owed).utf8))) }
    (self.unreported, self.owed) = (unreported, owed)
  }

  /// Whose toy it is from the next start on.
  mutating func belong(to user: [UInt8], _ effects: inout Effects) {
    self.user = String(decoding: user, as: UTF8.self)
    effects.append(.store(key: "u.txt", user))
  }

  /// What the chip joins by itself from now on.
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
