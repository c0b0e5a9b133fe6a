// The kinds of devices that `setup` can add: for each, its links, the default device name, and questions for the options that it requires.
// A test compares this table with the kinds of the daemon. No I/O.

struct SetupKind: Sendable {
  /// One option that cannot be detected.
  struct Question: Sendable {
    var key: String
    /// The text of the question.
    var text: String
    /// The allowed values, or empty if any text is allowed.
    var choices: [String] = []
    /// The default for this candidate.
    var fallback: @Sendable (Candidate) -> String
    /// Whether to ask the question, given the previous answers. If not, the option is omitted.
    var isNeeded: @Sendable ([String: String]) -> Bool = { _ in true }
  }

  var name: String
  /// The URL schemes of its links.
  var schemes: [String]
  /// The default name of the device.
  var deviceName: String
  var questions: [Question] = []

  static let all = [
    SetupKind(name: "obd", schemes: ["serial", "tcp", "ble", "slcan", "can"], deviceName: "car"),
    SetupKind(
      name: "longboard", schemes: ["serial", "tcp", "ble"], deviceName: "board",
      questions: [
        Question(key: "protocol", text: "protocol of the board", choices: ["vesc", "elcomm"]) { candidate in
          candidate.isVESC || candidate.transport != "ble" ? "vesc" : "elcomm"
        }
      ]),
    SetupKind(name: "rc-car", schemes: ["tcp"], deviceName: "rc-car"),
    SetupKind(
      name: "mirror", schemes: ["ble"], deviceName: "mirror",
      questions: [
        Question(
          key: "profile", text: "firmware of the mirror (stock: since April 2024, encrypted)", choices: ["stock", "plain"]
        ) { _ in "stock" },
        Question(
          key: "key-file", text: "file with the mirror's key", fallback: { _ in "/etc/vehicled/mirror.key" },
          isNeeded: { $0["profile"] == "stock" }),
        Question(
          key: "iv-file", text: "file with the mirror's initialization vector", fallback: { _ in "/etc/vehicled/mirror.iv" },
          isNeeded: { $0["profile"] == "stock" }),
      ]),
    SetupKind(name: "heart-rate", schemes: ["ble"], deviceName: "strap"),
    SetupKind(name: "foot-pod", schemes: ["ble"], deviceName: "foot"),
    SetupKind(name: "position", schemes: ["tcp"], deviceName: "gps"),
  ]

  static subscript(_ name: String) -> SetupKind? { all.first { $0.name == name } }

  /// The baud rate to configure for a serial link; nil if the daemon detects it.
  func baud(_ options: [String: String]) -> Int? {
    guard name == "longboard" else { return nil }
    return options["protocol"] == "elcomm" ? 9600 : 115_200
  }

  /// The kind behind a USB serial port with this name in /dev/serial/by-id. The name of a generic USB serial converter does not identify a
  /// kind. Source: the USB strings of OBDLink adapters (ScanTool.net) and of VESC's firmware, which uses ChibiOS.
  static func kind(ofPort name: String) -> String? {
    let name = name.uppercased()
    if ["SCANTOOL", "OBDLINK", "ELM327"].contains(where: name.contains) { return "obd" }
    return Candidate.namesOfVESC.contains(where: name.contains) ? "longboard" : nil
  }
}

extension Candidate {
  static let namesOfVESC = ["VESC", "CHIBIOS"]

  /// Whether its name is that of a VESC, so that the protocol is known.
  var isVESC: Bool { Self.namesOfVESC.contains { name?.uppercased().contains($0) == true } }
}
