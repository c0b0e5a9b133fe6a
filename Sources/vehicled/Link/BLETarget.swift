// Which peer on Bluetooth Low Energy a link means, and what of its GATT table is to be used. Pure.

import Protocols

struct BLETarget: Hashable, Sendable {
  enum Match: Hashable, Sendable {
    /// `AA:BB:CC:DD:EE:FF`, upper case.
    case address(String)
    case name(String)
    case prefix(String)
    case part(String)
    /// Whoever has a name of the kind's, and answers its probe.
    case auto
  }

  var match: Match
  var adapter = BLETarget.usualAdapter
  var service: GATTUUID?
  var notify: GATTUUID?
  var write: GATTUUID?
  /// Whether writes are acknowledged; nil leaves it to the kind and the characteristic.
  var response: Bool?

  static let usualAdapter = "hci0"

  /// Whether a peer of this address and name is meant.
  func means(address: String, name: String?, role: GATTRole) -> Bool {
    switch match {
    case .address(let wanted): address.uppercased() == wanted
    case .name(let wanted): name == wanted
    case .prefix(let wanted): name?.hasPrefix(wanted) ?? false
    case .part(let wanted): name?.contains(wanted) ?? false
    case .auto: name.map(role.matches(name:)) ?? false
    }
  }
}

extension BLETarget.Match: CustomStringConvertible {
  /// Reads what stands after `ble:`, percent-encoding undone. A name may hold anything but a star at its ends.
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

  /// What is searched for, in a sentence.
  var words: String {
    switch self {
    case .address(let address): address
    case .name(let name): quoted(name)
    case .prefix(let text): "a name that begins with \(quoted(text))"
    case .part(let text): "a name with \(quoted(text)) in it"
    case .auto: "any adapter of a known name"
    }
  }
}

extension BLETarget {
  /// Six bytes in hexadecimal with colons.
  static func isAddress(_ text: some StringProtocol) -> Bool {
    let pairs = text.split(separator: ":", omittingEmptySubsequences: false)
    return pairs.count == 6 && pairs.allSatisfy { $0.utf8.count == 2 && $0.allSatisfy(\.isHexDigit) }
  }
}
