// Takes out of a report what is nobody's business: who and where somebody is, what opens a door, which car it is. What is left is still
// enough to see what happens. Pure: text in, text out.

enum Redaction {
  static let mark = "…"

  /// A line of configuration: the values of keys that name a person, a place or a secret, and all of a `secret` file's path.
  static func configuration(_ line: String) -> String {
    let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return text(line) }
    let key = parts[0].drop { $0 == "#" || $0 == " " }.split(separator: " ").first ?? ""
    guard personal.contains(where: { key.hasSuffix($0) }) else { return text(line) }
    return "\(parts[0])= \"\(mark)\""
  }

  private static let personal = [
    "username", "user", "users", "name", "latitude", "longitude", "place", "password", "token", "secret", "key", "iv", "ssid", "proxy",
    "birthday",
    "address",
  ]

  /// Any line: numbers of vehicles, hardware addresses, what stands before an @ in a URL, and IP addresses of other networks.
  static func text(_ line: String) -> String {
    line.replacing(/\b[A-HJ-NPR-Z0-9]{17}\b/.wordBoundaryKind(.simple)) { match in
      isVehicleNumber(match.output) ? match.output.prefix(3) + mark : match.output
    }
    .replacing(/\b((?:[0-9A-Fa-f]{2}:){3})(?:[0-9A-Fa-f]{2}:){2}[0-9A-Fa-f]{2}\b/.wordBoundaryKind(.simple)) { "\($0.output.1)\(mark)" }
    .replacing(/dev((?:_[0-9A-Fa-f]{2}){3})(?:_[0-9A-Fa-f]{2}){3}/) { "dev\($0.output.1)\(mark)" }
    .replacing(/:\/\/[^\/\s@"]+@/) { _ in "://\(mark)@" }
    .replacing(/\b(\d{1,3})\.(\d{1,3})\.\d{1,3}\.\d{1,3}\b/.wordBoundaryKind(.simple)) { match in
      isLocal(match.output.1, match.output.2) ? match.output.0 : "\(match.output.1).\(mark)"[...]
    }
  }

  /// Letters and digits together; a hex dump of seventeen digits is none.
  private static func isVehicleNumber(_ word: Substring) -> Bool {
    word.contains { ("G"..."Z").contains($0) } && word.contains { $0.isNumber }
  }

  private static func isLocal(_ first: Substring, _ second: Substring) -> Bool {
    switch (first, Int(second) ?? 256) {
    case ("127", _), ("10", _), ("0", _): true
    case ("192", 168), ("169", 254): true
    case ("172", 16...31): true
    default: false
    }
  }

  /// Lines of a recording without the answers to questions that ask who the vehicle is (services 09 and 22 F1).
  static func recording(_ lines: [String]) -> [String] {
    var isHidden = false
    return lines.map { line in
      // Nothing but a time and hex stands in most lines, and there are many.
      guard line.contains("\"hex\":") else { return text(line) }
      if line.contains("\"dir\":\"tx\"") { isHidden = asksWho(line) }
      guard line.contains("\"dir\":\"rx\""), isHidden || tellsWho(line) else { return line }
      return line.replacing(/"hex":"[0-9A-Fa-f]*"/) { _ in "\"hex\":\"\(mark)\"" }
    }
  }

  /// A VESC's answer about its firmware (02 LENGTH 00 …) holds its chip's number.
  private static func tellsWho(_ line: String) -> Bool { line.contains(/"hex":"02[0-9A-Fa-f]{2}00[0-9A-Fa-f]{30}/) }

  /// As ELM327 commands are sent, in hex of their letters: `09…`, `22F1…`.
  private static func asksWho(_ line: String) -> Bool {
    guard let hex = line.firstMatch(of: /"hex":"([0-9A-Fa-f]*)"/)?.output.1.uppercased() else { return false }
    return hex.hasPrefix("3039") || hex.contains("443A3039") || hex.contains("32324631")
  }
}
