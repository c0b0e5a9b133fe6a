// A time zone: its offset from UTC at any time, from the system's zone files. No I/O except reading them. Unlike tzset(3), a lookup
// changes no state of the process.
// Source: RFC 8536 (TZif). Only the 64-bit data of version 2 and later is read.

import Glibc

struct Zone: Equatable, Sendable {
  struct Offset: Equatable, Sendable {
    /// The seconds by which local time is ahead of UTC.
    var seconds: Int
    var abbreviation: String
  }

  /// The name in the IANA database, such as Europe/Berlin.
  let name: String
  /// The times at which the offset changes, in seconds since the Unix epoch.
  private var transitions: [Int] = []
  /// For each transition, the index in `offsets` of the offset that takes effect.
  private var indices: [Int] = []
  private var offsets = [Offset(seconds: 0, abbreviation: "UTC")]
  /// The rule for times after the last transition.
  private var rule: ZoneRule?

  static let utc = Zone(name: "UTC")
  private static let directory = "/usr/share/zoneinfo"

  private init(name: String) { self.name = name }

  /// A zone of the IANA database; nil if the system does not have it.
  init?(named name: String) {
    guard !name.isEmpty, !name.hasPrefix("/"), !name.split(separator: "/").contains(".."), name.utf8.count < 256 else { return nil }
    self.init(Self.read("\(Environment["TZDIR"] ?? Self.directory)/\(name)"), name: name)
  }

  /// The time zone of this computer: `TZ`, which can be the name of a zone or a rule, or else /etc/localtime.
  static func local(_ variable: String? = Environment["TZ"]) -> Zone {
    guard let variable else { return Zone(read("/etc/localtime"), name: "local time") ?? utc }
    let text = variable.hasPrefix(":") ? String(variable.dropFirst()) : variable
    if let zone = text.hasPrefix("/") ? Zone(read(text), name: text) : Zone(named: text) { return zone }
    guard let rule = ZoneRule(text) else { return utc }
    var zone = Zone(name: text)
    (zone.rule, zone.offsets) = (rule, [rule.standard])
    return zone
  }

  /// Parses a TZif file; nil if the bytes are not one.
  init?(_ bytes: [UInt8], name: String) {
    self.init(name: name)
    guard bytes.count >= 44, bytes.starts(with: Array("TZif".utf8)), bytes[4] >= UInt8(ascii: "2") else { return nil }
    func number(_ at: Int, _ size: Int) -> Int {
      let bits = bytes[at..<at + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return size == 4 ? Int(Int32(truncatingIfNeeded: bits)) : Int(Int64(bitPattern: bits))
    }
    /// The counts in the header at a position, in the order isut, isstd, leap, time, type, char; nil if one is implausible.
    func counts(_ at: Int) -> [Int]? {
      let counts = (0..<6).map { number(at + 20 + 4 * $0, 4) }
      return counts.allSatisfy { (0...100_000).contains($0) } ? counts : nil
    }
    // The 32-bit data comes first.
    guard let old = counts(0) else { return nil }
    let header = 44 + old[3] * 5 + old[4] * 6 + old[5] + old[2] * 8 + old[1] + old[0]
    guard bytes.count >= header + 44, let new = counts(header) else { return nil }
    let (times, types) = (header + 44, header + 44 + new[3] * 9)
    let names = types + new[4] * 6
    let end = names + new[5] + new[2] * 12 + new[1] + new[0]
    guard new[4] > 0, bytes.count >= end else { return nil }
    transitions = (0..<new[3]).map { number(times + 8 * $0, 8) }
    indices = (0..<new[3]).map { Int(bytes[times + new[3] * 8 + $0]) }
    offsets = (0..<new[4]).map { type in
      let at = types + 6 * type
      let text = bytes[min(names + Int(bytes[at + 5]), end)..<names + new[5]].prefix { $0 != 0 }
      return Offset(seconds: number(at, 4), abbreviation: String(decoding: text, as: UTF8.self))
    }
    guard indices.allSatisfy({ $0 < offsets.count }) else { return nil }
    rule = ZoneRule(String(decoding: bytes[end...].dropFirst().prefix { $0 != 0x0A }, as: UTF8.self))
  }

  /// The offset at a time in seconds since the Unix epoch.
  func offset(at seconds: Int) -> (seconds: Int, abbreviation: String) {
    let found = find(seconds)
    return (found.seconds, found.abbreviation)
  }

  private func find(_ seconds: Int) -> Offset {
    guard let last = transitions.last, seconds < last else {
      return rule?.offset(at: seconds) ?? indices.last.map { offsets[$0] } ?? offsets[0]
    }
    var (low, high) = (0, transitions.count)  // the first transition after the time is in low...high
    while low < high {
      let middle = (low + high) / 2
      if transitions[middle] <= seconds { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? offsets[0] : offsets[indices[low - 1]]
  }

  private static func read(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "re") else { return [] }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 18)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes[..<count])
  }
}
