// What the toy is told to join a network, checked against what its firmware survives: it pastes names and passwords into an AT
// command as they are. It describes itself without the password.
// Facts: protocols of the Trivia toy, §A: parsing, sizes, forbidden characters.

/// A network and its password, and the user that the toy plays for.
struct ToyCredentials: Sendable, CustomStringConvertible, CustomReflectable {
  private static let longest = 128

  /// `USER:SSID:PASSWORD`, what the toy reads in one packet.
  let bytes: [UInt8]
  let user: Int
  let ssid: String
  /// What may go wrong although it is allowed.
  let warning: String?

  var description: String { "(the toy's credentials)" }
  var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Checks what a person typed, or says which of it the toy cannot be told and why.
  init(user: Int, ssid: String, password: String) throws(CommandError) {
    let name = Array(ssid.utf8)
    guard (1...32).contains(name.count) else {
      throw .invalid(argument: "ssid", "a network's name has 1 to 32 bytes, this one has \(name.count)")
    }
    if let words = Self.trouble(name) { throw .invalid(argument: "ssid", "the toy cannot join a network whose name has \(words) in it") }
    if name.contains(colon) {
      throw .invalid(argument: "ssid", "the toy takes the : in a network's name for its end; rename the network, or use another")
    }
    guard !ssid.unicodeScalars.contains("\u{FFFD}"), !password.unicodeScalars.contains("\u{FFFD}") else {
      throw .invalid(argument: "ssid", "name or password came with bytes that are no UTF-8: what the toy were told would be something else")
    }
    let secret = Array(password.utf8)
    guard secret.isEmpty || (8...63).contains(secret.count) else {
      throw .invalid(argument: "password", "a Wi-Fi password has 8 to 63 bytes, or is empty for an open network")
    }
    if let words = Self.trouble(secret) {
      throw .invalid(argument: "password", "the toy cannot be told a password with \(words) in it; give the network another")
    }
    bytes = Array("\(user):".utf8) + name + [colon] + secret
    guard bytes.count <= Self.longest else {
      throw .invalid(argument: "ssid", "all together is longer than the toy's \(Self.longest) bytes")
    }
    (self.user, self.ssid) = (user, ssid)
    let comma = UInt8(ascii: ",")
    warning =
      name.contains(comma) || secret.contains(comma)
      ? "a comma in name or password may keep the toy from joining: if its LED turns purple, that is why" : nil
  }

  private static func trouble(_ bytes: [UInt8]) -> String? {
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "\""): return "\" (a quotation mark)"
      case UInt8(ascii: "\\"): return "\\ (a backslash)"
      case 0..<0x20, 0x7F: return "a control character"
      default: continue
      }
    }
    return nil
  }
}
