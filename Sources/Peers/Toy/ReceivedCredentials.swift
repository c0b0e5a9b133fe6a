// What a phone tells a toy, as the toy takes it apart, and the command of its Wi-Fi chip that it pastes it into. It must never
// be more careful than the toy is: nothing is escaped, nothing is refused.
// Facts: protocols of the toy, §A (fields and colons, 128 bytes, AT+CWJAP); that a text without any colon is all three fields
// follows from the code as it does for one.

import Protocols

/// A user's number, a network's name and its password, as bytes.
struct ReceivedCredentials: Sendable, Equatable {
  /// Its buffer; what is beyond is lost.
  static let longest = 128

  var user: [UInt8]
  var network: [UInt8]
  var password: [UInt8]

  init(user: [UInt8], network: [UInt8], password: [UInt8]) { (self.user, self.network, self.password) = (user, network, password) }

  /// Takes a packet apart: the first colon ends the user, the second the network, the rest is the password.
  init(packet: [UInt8]) {
    let kept = packet.prefix(Self.longest)
    let first = kept.firstIndex(of: 0x3A)
    user = Array(kept[..<(first ?? kept.endIndex)])
    let rest = kept[(first.map { $0 + 1 } ?? kept.startIndex)...]
    let second = rest.firstIndex(of: 0x3A)
    network = Array(rest[..<(second ?? rest.endIndex)])
    password = Array(rest[(second.map { $0 + 1 } ?? rest.startIndex)...])
  }

  /// The line that joins a network.
  var command: [UInt8] { Array("AT+CWJAP=\"".utf8) + network + Array("\",\"".utf8) + password + Array("\"".utf8) }

  /// What the chip makes of a line that is not one name and one password, in a person's words; nil: it is.
  var injection: String? {
    let breaking: Set<UInt8> = [0x22, 0x5C, 0x2C, 0x0A, 0x0D]
    guard (network + password).contains(where: breaking.contains) else { return nil }
    let lines = command.split { $0 == 0x0A || $0 == 0x0D }.map { String(decoding: $0, as: UTF8.self) }
    let rest = lines.count > 1 ? ", and then \(lines.dropFirst().joined(separator: ", "))" : ""
    return "injected: the chip is told \(lines[0])\(rest)"
  }

  /// A network can be called so, and have such a password.
  var isPossible: Bool { (1...32).contains(network.count) && (password.isEmpty || (8...63).contains(password.count)) && injection == nil }
}

/// The network that is in the air where the toy is.
public struct SimulatedWiFiNetwork: Sendable, Equatable {
  public var name: String
  /// Empty: it is open.
  public var password: String

  /// A network of this name and password.
  public init(_ name: String, password: String = "") { (self.name, self.password) = (name, password) }

  func takes(_ credentials: ReceivedCredentials) -> Bool {
    credentials.network == Array(name.utf8) && credentials.password == Array(password.utf8)
  }
}
