// What a Trivia toy can be told of a network, and what not: its firmware pastes name and password as they are into
// AT+CWJAP="ssid","password", and takes the first two colons for separators. The daemon checks, and vehiclectl does before that, so that
// a person hears it before the toy's button is pressed.
// Facts: protocols of the Trivia toy, §A: parsing, sizes, forbidden characters.

/// The rules for a toy's network.
public enum ToyWiFi {
  /// Bytes of a network's name.
  public static let nameLength = 1...32
  /// Bytes of a password; a network without one is open.
  public static let passwordLength = 8...63
  /// How the report of `wifi` begins from which on nothing can be taken back.
  public static let told = "the toy is told"

  /// What is wrong with a network's name, or nil.
  public static func objection(toName text: String) -> String? {
    guard nameLength.contains(text.utf8.count) else { return "a network's name has 1 to 32 bytes; this one has \(text.utf8.count)" }
    let wrong = text.utf8.contains(colon) ? "a colon" : forbidden(text)
    return wrong.map { "the toy cannot be told a network with \($0) in its name; give the network another name" }
  }

  /// What is wrong with a password, or nil; an empty one is for an open network.
  public static func objection(toPassword text: String) -> String? {
    guard text.isEmpty || passwordLength.contains(text.utf8.count) else {
      return "the password of a network has 8 to 63 bytes, or is empty for an open one; this one has \(text.utf8.count)"
    }
    return forbidden(text).map { "the toy cannot be told a password with \($0) in it; give the network another" }
  }

  /// What may go wrong although it is allowed, or nil.
  public static func warning(_ name: String, _ password: String) -> String? {
    let places = [("name", name), ("password", password)].filter { $0.1.utf8.contains(UInt8(ascii: ",")) }.map { "the \($0.0)" }
    return places.isEmpty ? nil : "there is a comma in \(places.joined(separator: " and ")): some toys cannot join such a network"
  }

  private static func forbidden(_ text: String) -> String? {
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": return "a double quote"
      case "\\": return "a backslash"
      case "\u{0}"..<" ", "\u{7F}": return "a line break or another control character"
      case "\u{FFFD}": return "bytes that are no UTF-8"
      default: continue
      }
    }
    return nil
  }
}
