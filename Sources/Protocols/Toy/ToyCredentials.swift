// The credentials with which the toy joins a network. They are validated, because the firmware inserts names and passwords into an AT
// command without escaping. `description` does not contain the password.
// Source: neils95/Trivio, microprocessor.ino and ESP8266.cpp (parsing, sizes, forbidden characters).

/// A network, its password, and the user that the toy plays for.
struct ToyCredentials: Sendable, CustomStringConvertible, CustomReflectable {
  private static let maxLength = 128

  /// `USER:SSID:PASSWORD`, which the toy reads as one packet.
  let bytes: [UInt8]
  let user: Int
  let ssid: String
  /// A possible problem with valid credentials; nil if there is none.
  let warning: String?

  var description: String { "(the toy's credentials)" }
  var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Validates the input; throws if the toy cannot handle it.
  init(user: Int, ssid: String, password: String) throws(CommandError) {
    if let message = ToyWiFi.validationError(forName: ssid) { throw .invalid(argument: "ssid", message) }
    if let message = ToyWiFi.validationError(forPassword: password) { throw .invalid(argument: "password", message) }
    bytes = Array("\(user):\(ssid):\(password)".utf8)
    guard bytes.count <= Self.maxLength else {
      throw .invalid(argument: "ssid", "user, name and password together exceed the toy's limit of \(Self.maxLength) bytes")
    }
    (self.user, self.ssid) = (user, ssid)
    warning = ToyWiFi.warning(ssid, password)
  }
}
