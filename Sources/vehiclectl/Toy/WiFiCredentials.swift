// What the toy can be told of a network, and what not. Pure. The daemon checks as well, and its word is the last; here a person
// hears it before the button is pressed.
// Facts: the toy's firmware pastes both unescaped into AT+CWJAP="ssid","password", and takes the first two colons as separators.

enum WiFiCredentials {
  /// Bytes of a network's name.
  static let name = 1...32
  /// Bytes of a password; a network without one is open.
  static let password = 8...63

  /// What is wrong with a network's name.
  static func objection(toName text: String) -> String? {
    guard name.contains(text.utf8.count) else {
      return "a network's name has 1 to 32 bytes; this one has \(text.utf8.count)"
    }
    if text.utf8.contains(UInt8(ascii: ":")) {
      return "the toy cannot be told a network with a colon in its name; give the network another name"
    }
    return forbidden(text).map { "the toy cannot be told a network with \($0) in its name; give the network another name" }
  }

  /// What is wrong with a password; an empty one is for an open network.
  static func objection(toPassword text: String) -> String? {
    guard text.isEmpty || password.contains(text.utf8.count) else {
      return "the password of a network has 8 to 63 bytes; this one has \(text.utf8.count)"
    }
    return forbidden(text).map { "the toy cannot be told a password with \($0) in it; give the network another" }
  }

  /// What may go wrong.
  static func warning(_ name: String, _ password: String) -> String? {
    let places = [("name", name), ("password", password)].filter { $0.1.utf8.contains(UInt8(ascii: ",")) }.map { "the \($0.0)" }
    return places.isEmpty ? nil : "There is a comma in \(places.joined(separator: " and ")): some toys cannot join such a network."
  }

  private static func forbidden(_ text: String) -> String? {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): return "a double quote"
      case UInt8(ascii: "\\"): return "a backslash"
      case UInt8(ascii: "\r"), UInt8(ascii: "\n"), 0: return "a line break or NUL"
      default: break
      }
    }
    return nil
  }
}
