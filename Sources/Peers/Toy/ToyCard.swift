// The persistent state of a toy: the files of its SD card, and the network stored in its Wi-Fi chip. Invalid files count as absent.
// Source: microprocessor.ino of neils95/Trivio (files p, w, s, d, u; a ring of 500 slots for facts, which are filled when the toy ships).

import Protocols

/// The SD card of a running toy.
struct ToyCard: Sendable, Equatable {
  /// The number of slots for facts, and the maximum of the counters.
  static let slotCount = 500
  private static let maxFileSize = 1024

  /// The slot that is spoken next, 0 to 499.
  private(set) var nextToSpeak = 0
  /// The slot that is overwritten next, 0 to 499.
  private(set) var nextToWrite = 0
  /// The number of plays that have not been reported to the server yet, 0 to 500.
  private(set) var unreportedPlays = 0
  /// The number of facts that must be downloaded in place of played ones, 0 to 500.
  private(set) var missingFacts = 0
  /// The user number from the phone; empty for none.
  private(set) var user = ""
  /// Downloaded facts by slot; the other slots have the shipped facts.
  private(set) var facts: [Int: [UInt8]] = [:]
  /// The network that the Wi-Fi chip joins automatically.
  private(set) var storedNetwork: ReceivedCredentials?

  /// Creates a card from its files; without them, the card of a new toy with this user.
  init(_ files: [String: [UInt8]], user: String) {
    func number(_ name: String, _ range: ClosedRange<Int>) -> Int {
      guard let value = files[name].flatMap({ Int(Self.text($0)) }), range.contains(value) else { return 0 }
      return value
    }
    nextToSpeak = number("p.txt", 0...Self.slotCount - 1)
    nextToWrite = number("w.txt", 0...Self.slotCount - 1)
    unreportedPlays = number("s.txt", 0...Self.slotCount)
    missingFacts = number("d.txt", 0...Self.slotCount)
    self.user = files["u.txt"].map(Self.text) ?? user
    for slot in 0..<Self.slotCount { facts[slot] = files["\(slot).txt"].map { Array($0.prefix(Self.maxFileSize)) } }
    if let lines = files["esp8266.txt"]?.split(separator: 0x0A, omittingEmptySubsequences: false), lines.count == 2 {
      storedNetwork = ReceivedCredentials(user: [], network: Array(lines[0]), password: Array(lines[1]))
    }
  }

  private static func text(_ bytes: [UInt8]) -> String {
    let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x0A || byte == 0x0D }
    let trimmed = bytes.prefix(128).drop(while: isBlank).reversed().drop(while: isBlank).reversed()
    return String(decoding: trimmed, as: UTF8.self)
  }

  /// Returns the next fact and its slot, and advances.
  mutating func playNext(_ effects: inout Effects) -> (slot: Int, text: String) {
    let slot = nextToSpeak
    nextToSpeak = (nextToSpeak + 1) % Self.slotCount
    effects.append(.store(key: "p.txt", Array(String(nextToSpeak).utf8)))
    let text = facts[slot].map { String(decoding: $0, as: UTF8.self) } ?? Self.shippedFacts[slot % Self.shippedFacts.count]
    return (slot, text)
  }

  /// Stores a fact in place of the oldest one, and returns its slot.
  mutating func store(_ fact: [UInt8], _ effects: inout Effects) -> Int {
    let slot = nextToWrite
    facts[slot] = fact
    nextToWrite = (nextToWrite + 1) % Self.slotCount
    effects.append(.store(key: "\(slot).txt", fact))
    effects.append(.store(key: "w.txt", Array(String(nextToWrite).utf8)))
    return slot
  }

  /// Counts a play that could not be reported to the server.
  mutating func countUnreported(_ effects: inout Effects) {
    setCounters(min(Self.slotCount, unreportedPlays + 1), min(Self.slotCount, missingFacts + 1), &effects)
  }

  mutating func subtractReported(_ plays: Int, _ effects: inout Effects) {
    setCounters(max(0, unreportedPlays - plays), missingFacts, &effects)
  }

  mutating func subtractDownloadedFact(_ effects: inout Effects) { setCounters(unreportedPlays, max(0, missingFacts - 1), &effects) }

  private mutating func setCounters(_ unreportedPlays: Int, _ missingFacts: Int, _ effects: inout Effects) {
    if unreportedPlays != self.unreportedPlays { effects.append(.store(key: "s.txt", Array(String(unreportedPlays).utf8))) }
    if missingFacts != self.missingFacts { effects.append(.store(key: "d.txt", Array(String(missingFacts).utf8))) }
    (self.unreportedPlays, self.missingFacts) = (unreportedPlays, missingFacts)
  }

  /// Stores the user, which takes effect at the toy's next start.
  mutating func setUser(_ user: [UInt8], _ effects: inout Effects) {
    self.user = String(decoding: user, as: UTF8.self)
    effects.append(.store(key: "u.txt", user))
  }

  /// Stores the network in the Wi-Fi chip.
  mutating func remember(_ credentials: ReceivedCredentials, _ effects: inout Effects) {
    storedNetwork = credentials
    effects.append(.store(key: "esp8266.txt", credentials.network + [0x0A] + credentials.password))
  }

  private static let shippedFacts = [
    "A day on Venus is longer than its year.", "Octopuses have three hearts.", "Bananas are berries, and strawberries are not.",
    "The shortest war lasted less than an hour.", "Sharks are older than trees.", "Sea otters hold hands while they sleep.",
    "A teaspoon of a neutron star weighs billions of tons.", "Wombats leave cubes behind.",
  ]
}
