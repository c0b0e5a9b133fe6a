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
    if let words = ToyWiFi.objection(toName: ssid) { throw .invalid(argument: "ssid", words) }
    if let words = ToyWiFi.objection(toPassword: password) { throw .invalid(argument: "password", words) }
    bytes = Array("\(user):\(ssid):\(password)".utf8)
    guard bytes.count <= Self.longest else {
      throw .invalid(argument: "ssid", "all together is longer than the toy's \(Self.longest) bytes")
    }
    (self.user, self.ssid) = (user, ssid)
    warning = ToyWiFi.warning(ssid, password)
  }
}
