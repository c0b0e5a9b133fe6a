// The BLE peer of a link, and the characteristics to use.

import Protocols
import ServiceRuntime

struct BLETarget: Hashable, Sendable {
  enum Match: Hashable, Sendable {
    /// `AA:BB:CC:DD:EE:FF`, upper case.
    case address(String)
    case name(String)
    case prefix(String)
    case part(String)
    /// Any peer with a name that is known for the kind, if it responds to the kind's probe.
    case auto
  }

  var match: Match
  var adapter = BLETarget.defaultAdapter
  var service: GATTUUID?
  var notify: GATTUUID?
  var write: GATTUUID?
  /// Whether writes are acknowledged, or nil if the kind and the characteristic decide.
  var response: Bool?

  static let defaultAdapter = "hci0"

  /// Whether a peer with this address and name matches.
  func matches(address: String, name: String?, description: PeripheralDescription) -> Bool {
    switch match {
    case .address(let expected): address.uppercased() == expected
    case .name(let expected): name == expected
    case .prefix(let prefix): name?.hasPrefix(prefix) ?? false
    case .part(let part): name?.contains(part) ?? false
    case .auto: name.map(description.matches(name:)) ?? false
    }
  }
}

extension BLETarget.Match: CustomStringConvertible {
  /// Parses the part after `ble:`, without percent-encoding. A name itself cannot start or end with `*`.
  init(_ text: String) {
    if text == "auto" {
      self = .auto
    } else if BLETarget.isAddress(text) {
      self = .address(text.uppercased())
    } else if text.count > 2, text.hasPrefix("*"), text.hasSuffix("*") {
      self = .part(String(text.dropFirst().dropLast()))
    } else if text.count > 1, text.hasSuffix("*") {
      self = .prefix(String(text.dropLast()))
    } else {
      self = .name(text)
    }
  }

  var description: String {
    switch self {
    case .address(let text), .name(let text): text
    case .prefix(let text): text + "*"
    case .part(let text): "*\(text)*"
    case .auto: "auto"
    }
  }

  /// A description for messages.
  var label: String {
    switch self {
    case .address(let address): address
    case .name(let name): quoted(name)
    case .prefix(let text): "a name starting with \(quoted(text))"
    case .part(let text): "a name containing \(quoted(text))"
    case .auto: "any peripheral with a known name"
    }
  }
}

extension BLETarget {
  /// Whether the text is six hexadecimal bytes, separated by colons.
  static func isAddress(_ text: some StringProtocol) -> Bool {
    let pairs = text.split(separator: ":", omittingEmptySubsequences: false)
    return pairs.count == 6 && pairs.allSatisfy { $0.utf8.count == 2 && $0.allSatisfy(\.isHexDigit) }
  }
}
