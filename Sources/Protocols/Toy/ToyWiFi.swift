// The rules for the Wi-Fi credentials of a Trivia toy. Its firmware inserts name and password without escaping into
// AT+CWJAP="ssid","password", and treats the first two colons as separators. The daemon checks the rules, and so does vehiclectl, before
// the user presses the toy's button.
// Source: neils95/Trivio, microprocessor.ino and ESP8266.cpp (parsing, sizes, forbidden characters).

/// The rules for a toy's network.
public enum ToyWiFi {
  /// The length of a network's name, in bytes.
  public static let nameLength = 1...32
  /// The length of a password, in bytes; an open network has none.
  public static let passwordLength = 8...63
  /// The start of the progress text of the action `wifi` once the setup can no longer be cancelled.
  public static let sendingReport = "sending the credentials"

  /// Why a network's name is invalid; nil if it is valid.
  public static func validationError(forName name: String) -> String? {
    guard nameLength.contains(name.utf8.count) else { return "a network name must have 1 to 32 bytes, not \(name.utf8.count)" }
    let wrong = name.utf8.contains(colon) ? "a colon" : forbidden(name)
    return wrong.map { "a network name must not contain \($0), which the toy cannot handle; rename the network" }
  }

  /// Why a password is invalid; nil if it is valid. An empty password is for an open network.
  public static func validationError(forPassword password: String) -> String? {
    guard password.isEmpty || passwordLength.contains(password.utf8.count) else {
      return "a Wi-Fi password must have 8 to 63 bytes, or none for an open network, not \(password.utf8.count)"
    }
    return forbidden(password).map { "a Wi-Fi password must not contain \($0), which the toy cannot handle; change the password" }
  }

  /// A possible problem with valid credentials; nil if there is none.
  public static func warning(_ name: String, _ password: String) -> String? {
    let fields = [("name", name), ("password", password)].filter { $0.1.utf8.contains(UInt8(ascii: ",")) }.map { "the \($0.0)" }
    return fields.isEmpty ? nil : "comma in \(fields.joined(separator: " and ")): some toys cannot join such a network"
  }

  private static func forbidden(_ text: String) -> String? {
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": return "a double quote"
      case "\\": return "a backslash"
      case "\u{0}"..<" ", "\u{7F}": return "a line break or another control character"
      case "\u{FFFD}": return "invalid UTF-8"
      default: continue
      }
    }
    return nil
  }
}
