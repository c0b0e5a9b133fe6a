// The kinds of devices that `setup` can add: for each, its links, the default device name, and questions for the options that it requires.
// A test compares this table with the kinds of the daemon. No I/O.

import Protocols

struct SetupKind: Sendable {
  /// One option that cannot be detected.
  struct Question: Sendable {
    var key: String
    /// The text of the question.
    var text: String
    /// The allowed values, or empty if any text is allowed.
    var choices: [String] = []
    /// The choice for which the option is omitted, in addition to its values.
    var omission: String?
    /// Whether the value is a whole number.
    var isNumber = false
    /// The schemes of the links for which the question is asked; empty: all.
    var schemes: [String] = []
    /// The default for this candidate.
    var fallback: @Sendable (Candidate) -> String
    /// Whether to ask the question, given the previous answers. If not, the option is omitted.
    var isNeeded: @Sendable ([String: String]) -> Bool = { _ in true }

    /// Whether to ask the question for this candidate, given the previous answers.
    func isAsked(for candidate: Candidate, _ answers: [String: String]) -> Bool {
      (schemes.isEmpty || schemes.contains(candidate.transport)) && isNeeded(answers)
    }

    /// The value of the option in TOML for an answer; nil if the option is omitted.
    func value(of answer: String) -> String? {
      answer == omission ? nil : isNumber ? answer : DeviceSection.quoted(answer)
    }

    /// Why a text is no answer, or nil.
    func problem(with answer: String) -> String? {
      isNumber && Int(answer).map { $0 > 0 } != true ? "\"\(answer)\" is not a whole number above 0" : nil
    }
  }

  /// The answer for which no vehicle is configured.
  static let noVehicle = "none"

  var name: String
  /// The URL schemes of its links.
  var schemes: [String]
  /// The default name of the device.
  var deviceName: String
  var questions: [Question] = []

  static let all = [
    SetupKind(name: "obd", schemes: ["serial", "tcp", "ble", "slcan", "can"], deviceName: "car", questions: [bitRate()]),
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
    SetupKind(
      name: "can", schemes: ["slcan", "can"], deviceName: "bus",
      questions: [
        Question(
          key: "vehicle", text: "vehicle to listen to (none: signals of a DBC file)", choices: CANProfile.all.map(\.name) + [noVehicle],
          omission: noVehicle, fallback: { _ in noVehicle }),
        bitRate { $0["vehicle"] == noVehicle },
      ]),
  ]

  private static func bitRate(isNeeded: @escaping @Sendable ([String: String]) -> Bool = { _ in true }) -> Question {
    Question(
      key: "bit-rate", text: "bit rate of the bus in bit/s", isNumber: true, schemes: ["slcan"], fallback: { _ in "500000" },
      isNeeded: isNeeded)
  }

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

extension SetupKind {
  /// Whether a USB serial port with this name in /dev/serial/by-id is an adapter that speaks slcan. Source: the USB strings of their firmware.
  static func isCANAdapter(_ name: String) -> Bool {
    let name = name.uppercased()
    return ["CANABLE", "CANTACT", "CANUSB", "USBTIN", "SLCAN"].contains(where: name.contains)
  }
}

extension Candidate {
  static let namesOfVESC = ["VESC", "CHIBIOS"]

  /// Whether its name is that of a VESC, so that the protocol is known.
  var isVESC: Bool { Self.namesOfVESC.contains { name?.uppercased().contains($0) == true } }
}
