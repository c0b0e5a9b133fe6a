// The credentials that a phone sends to a toy. They are parsed and passed to the Wi-Fi chip as the firmware does: without escaping or
// validation.
// Source: microprocessor.ino and ESP8266.cpp of neils95/Trivio (fields and colons, 128 bytes, AT+CWJAP).

import Protocols

/// A user number, the name of a network and its password.
struct ReceivedCredentials: Sendable, Equatable {
  /// The size of the buffer; further bytes are lost.
  static let maxLength = 128

  var user: [UInt8]
  var network: [UInt8]
  var password: [UInt8]

  init(user: [UInt8], network: [UInt8], password: [UInt8]) { (self.user, self.network, self.password) = (user, network, password) }

  /// Parses a packet: the first colon ends the user, the second ends the network, and the rest is the password.
  init(packet: [UInt8]) {
    let received = packet.prefix(Self.maxLength)
    let first = received.firstIndex(of: 0x3A)
    user = Array(received[..<(first ?? received.endIndex)])
    let rest = received[(first.map { $0 + 1 } ?? received.startIndex)...]
    let second = rest.firstIndex(of: 0x3A)
    network = Array(rest[..<(second ?? rest.endIndex)])
    password = Array(rest[(second.map { $0 + 1 } ?? rest.startIndex)...])
  }

  /// The command to join the network.
  var command: [UInt8] { Array("AT+CWJAP=\"".utf8) + network + Array("\",\"".utf8) + password + Array("\"".utf8) }

  /// A description of what the chip executes if the credentials contain characters that break the command, or nil if they do not.
  var injection: String? {
    let specialCharacters: Set<UInt8> = [0x22, 0x5C, 0x2C, 0x0A, 0x0D]
    guard (network + password).contains(where: specialCharacters.contains) else { return nil }
    let lines = command.split { $0 == 0x0A || $0 == 0x0D }.map { String(decoding: $0, as: UTF8.self) }
    let rest = lines.count > 1 ? ", and then \(lines.dropFirst().joined(separator: ", "))" : ""
    return "injected: the chip executes \(lines[0])\(rest)"
  }

  /// Whether a network can have this name and password.
  var areValid: Bool { (1...32).contains(network.count) && (password.isEmpty || (8...63).contains(password.count)) && injection == nil }
}

/// The Wi-Fi network in range of the toy.
public struct SimulatedWiFiNetwork: Sendable, Equatable {
  public var name: String
  /// The password; empty for an open network.
  public var password: String

  /// Creates a network.
  public init(_ name: String, password: String = "") { (self.name, self.password) = (name, password) }

  func accepts(_ credentials: ReceivedCredentials) -> Bool {
    credentials.network == Array(name.utf8) && credentials.password == Array(password.utf8)
  }
}
