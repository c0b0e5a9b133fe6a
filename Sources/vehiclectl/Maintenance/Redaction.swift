// Removes personal data from a report: names, places, credentials, VINs, addresses. No I/O.

import FoundationEssentials
import Protocols
import Varlink

enum Redaction {
  static let mark = "…"

  /// The words that were redacted in one place and must be redacted in the whole report.
  struct Names {
    private(set) var words: Set<String> = []

    /// Adds a word, unless it has fewer than 3 bytes: short words would match too much.
    mutating func add(_ word: some StringProtocol) {
      if word.utf8.count >= 3 { words.insert(String(word)) }
    }

    /// Replaces the words, except as parts of longer words, such as "Ada" in "Adapter".
    func removed(from line: String) -> String {
      words.sorted { $0.utf8.count > $1.utf8.count }.reduce(line) { line, word in
        guard line.contains(word) else { return line }
        var (result, rest) = ("", line[...])
        while let range = rest.firstRange(of: word) {
          result += rest[..<range.lowerBound]
          let isPart = [result.last, rest[range.upperBound...].first].contains { $0?.isLetter == true || $0?.isNumber == true }
          result += isPart ? rest[range] : mark[...]
          rest = rest[range.upperBound...]
        }
        return result + rest
      }
    }
  }

  // MARK: Configuration

  /// The keys whose strings are not personal.
  private static let publicKeys: Set<String> = [
    "authorization", "control", "devices", "dialect", "gps", "header", "health", "iv-file", "key-file", "kind", "listen", "log-level",
    "observe",
    "poll", "priority", "profile", "protocol", "reply", "request", "socket", "toy-network", "type", "unit", "value", "vehicle", "weather",
  ]

  /// Redacts a configuration file. Keeps tables, numbers, booleans and strings of `publicKeys`; everything else, including multi-line
  /// values, is redacted. Comments and empty lines are omitted.
  static func configuration(_ lines: [String], _ names: inout Names) -> [String] {
    lines.compactMap { line in
      let shown = line.drop { $0 == " " || $0 == "\t" }
      if shown.isEmpty || shown.first == "#" { return nil }
      if shown.wholeMatch(of: /\[\[?[A-Za-z0-9_.\-]+\]\]?[ \t]*(?:#.*)?/) != nil {
        return String(shown.prefix { $0 != "#" })
      }
      guard let match = shown.wholeMatch(of: /([A-Za-z0-9_\-]+)[ \t]*=[ \t]*(.*)/) else { return hidden(shown, &names) }
      return "\(match.output.1) = \(value(match.output.2, of: String(match.output.1), &names))"
    }
  }

  private static func value(_ text: Substring, of key: String, _ names: inout Names) -> String {
    if let match = text.wholeMatch(of: /(true|false|[-+]?[0-9][0-9_.eE+\-]*)[ \t]*(?:#.*)?/) {
      guard Format.coordinates.contains(key) else { return String(match.output.1) }
      names.add(match.output.1)
    } else if let match = text.wholeMatch(of: /(?:"([^"\\]*)"|'([^']*)')[ \t]*(?:#.*)?/) {
      return "\"\(string(String(match.output.1 ?? match.output.2 ?? ""), of: key, &names))\""
    } else if publicKeys.contains(key), text.wholeMatch(of: /\[(?:[ \t]*"[A-Za-z0-9_.\-]*"[ \t]*,?)*[ \t]*\][ \t]*(?:#.*)?/) != nil {
      return String(text.prefix { $0 != "#" })
    }
    return hidden(text, &names)
  }

  private static func string(_ string: String, of key: String, _ names: inout Names) -> String {
    if key == "link" { return link(string, &names) }
    if publicKeys.contains(key), !string.hasPrefix("/home/") { return text(string) }
    // The credentials and the host of a URL are redacted in the whole report.
    if let match = string.firstMatch(of: /:\/\/(?:([^\/\s@]*)@)?([^\/:\s]+)/) {
      match.output.1.map { names.add($0) }
      if !isLocal(match.output.2) { names.add(match.output.2) }
    }
    names.add(string)
    return mark
  }

  private static func hidden(_ text: Substring, _ names: inout Names) -> String {
    for match in text.matches(of: /"([^"]+)"|'([^']+)'|([-+]?[0-9]+\.[0-9]{3,})/) {
      names.add(match.output.1 ?? match.output.2 ?? match.output.3 ?? "")
    }
    return mark
  }

  /// Redacts a link's URL: public hosts, and Bluetooth names that may be personal because they contain characters that product names do not
  /// have.
  static func link(_ url: String, _ names: inout Names) -> String {
    if let match = url.wholeMatch(of: /tcp:(?:\[([^\]]*)\]|([^:\/?]*))(.*)/) {
      let host = match.output.1 ?? match.output.2 ?? ""
      guard !isLocal(host) else { return text(url) }
      names.add(host)
      return "tcp:\(mark)\(text(String(match.output.3)))"
    }
    guard let match = url.wholeMatch(of: /ble:([^?]*)(.*)/) else { return text(url) }
    let name = percentDecoded(match.output.1)
    guard name.wholeMatch(of: /[A-Za-z0-9_*:\-]*/) == nil else { return "ble:\(text(name))\(match.output.2)" }
    names.add(name.prefix { $0 != "*" })
    names.add(match.output.1.prefix { $0 != "*" })
    return "ble:\(mark)\(match.output.2)"
  }

  private static func percentDecoded(_ text: Substring) -> String {
    text.replacing(/%([0-9A-Fa-f]{2})/) { match in UInt8(match.output.1, radix: 16).map { String(UnicodeScalar($0)) } ?? "" }.description
  }

  private static func isLocal(_ host: Substring) -> Bool {
    if ["localhost", "::1", ""].contains(host) { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil } && isLocal(parts[0], parts[1])
  }

  // MARK: Any text

  /// Redacts VINs, hardware addresses, credentials in URLs and public addresses in any line.
  static func text(_ line: String) -> String {
    line.replacing(/\b[A-HJ-NPR-Z0-9]{17}\b/.wordBoundaryKind(.simple)) { match in
      isVIN(match.output) ? match.output.prefix(3) + mark : match.output
    }
    .replacing(/\b((?:[0-9A-Fa-f]{2}:){3})(?:[0-9A-Fa-f]{2}:){2}[0-9A-Fa-f]{2}\b/.wordBoundaryKind(.simple)) { "\($0.output.1)\(mark)" }
    .replacing(/dev((?:_[0-9A-Fa-f]{2}){3})(?:_[0-9A-Fa-f]{2}){3}/) { "dev\($0.output.1)\(mark)" }
    .replacing(/:\/\/[^\/\s@"]+@/) { _ in "://\(mark)@" }
    .replacing(/\[[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*\]/) { $0.output == "[::1]" ? $0.output : "[\(mark)]"[...] }
    .replacing(/\b(?:[A-Za-z0-9\-]+\.)+(?!toml:|service:|local:)[A-Za-z]{2,}:(\d{2,5})\b/.wordBoundaryKind(.simple)) {
      "\(mark):\($0.output.1)"
    }
    .replacing(/\b(\d{1,3})\.(\d{1,3})\.\d{1,3}\.\d{1,3}\b/.wordBoundaryKind(.simple)) { match in
      isLocal(match.output.1, match.output.2) ? match.output.0 : "\(match.output.1).\(mark)"[...]
    }
  }

  /// Whether a word of 17 characters is a VIN: it has digits and letters beyond F, unlike 17 hexadecimal digits.
  private static func isVIN(_ word: Substring) -> Bool {
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

  /// Redacts the text of a vehicle's unusable reply if it has five bytes in hexadecimal or more: they can be a part of the VIN, even if the
  /// start of the response is missing.
  static func reply(_ text: String) -> String {
    text.filter { !" :#".contains($0) }.contains(/[0-9A-Fa-f]{10}/) ? mark : text
  }

  /// Redacts a recording: replies to requests for vehicle identification (services 09, 1A and 22 F1), and the firmware replies of a VESC. A
  /// recording of a slcan adapter is omitted, as it contains every frame of the bus. The first line is the header.
  static func recording(_ lines: [String]) -> [String] {
    let header = lines.first.flatMap { try? JSONDecoder().decode(Recording.Header.self, from: Data($0.utf8)) }
    if header?.frames == Recording.slcan { return ["(omitted: a slcan adapter receives all frames of a bus, which can contain the VIN)"] }
    if let reader = header.flatMap({ FrameReader($0) }) { return frames(lines, reader) }
    var isHidden = false
    return lines.map { line in
      // Most lines have hex data and no text, so they can skip the slow redaction of text.
      guard line.contains("\"hex\":") else { return text(line) }
      if line.contains("\"dir\":\"tx\"") { isHidden = requestsIdentity(line) }
      guard line.contains("\"dir\":\"rx\""), isHidden || containsIdentity(line) else { return line }
      return line.replacing(/"hex":"[0-9A-Fa-f]*"/) { _ in "\"hex\":\"\(mark)\"" }
    }
  }

  /// Redacts a recording of CAN frames: all that is received before the first request, and after one for identification until the next.
  private static func frames(_ lines: [String], _ reader: FrameReader) -> [String] {
    var (reader, isHidden) = (reader, true)
    let decoder = JSONDecoder()
    return lines.map { line in
      guard let parsed = try? decoder.decode(Recording.Line.self, from: Data(line.utf8)) else { return text(line) }
      if parsed.dir == .sent { reader.read(parsed) { isHidden = requestsIdentity($0) ?? isHidden } }
      guard isHidden, parsed.dir == .received else { return parsed.hex == nil ? text(line) : line }
      return line.replacing(/"hex":"[0-9A-Fa-f]*"/) { _ in "\"hex\":\"\(mark)\"" }
    }
  }

  /// Whether a frame is a request for identification, with or without an address before its length; nil if it can be the flow control
  /// between the frames of a response (3x), which is no request.
  private static func requestsIdentity(_ frame: CANFrame) -> Bool? {
    let bytes = (0..<frame.count).map { frame[$0] }
    let isIdentity = (0..<2).contains { start in
      guard bytes.count > start + 2, (2...7).contains(bytes[start]) else { return false }
      return switch bytes[start + 1] {
      case 0x09, 0x1A: true
      case 0x22: bytes[start + 2] == 0xF1
      default: false
      }
    }
    return isIdentity ? true : bytes.prefix(2).contains { $0 >> 4 == 3 } ? nil : false
  }

  /// Whether a line is the firmware reply of a VESC (02 LENGTH 00 …), which contains the UUID of its chip.
  private static func containsIdentity(_ line: String) -> Bool { line.contains(/"hex":"02[0-9A-Fa-f]{2}00[0-9A-Fa-f]{30}/) }

  /// Whether a line is an ELM327 command (in hexadecimal ASCII) that requests identification data: `09…`, `1A…` or `22F1…`.
  private static func requestsIdentity(_ line: String) -> Bool {
    guard let hex = line.firstMatch(of: /"hex":"([0-9A-Fa-f]*)"/)?.output.1.uppercased() else { return false }
    return ["3039", "3141"].contains { hex.hasPrefix($0) || hex.contains("443A\($0)") } || hex.contains("32324631")
  }
}
