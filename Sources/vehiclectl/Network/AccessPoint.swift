// An access point as reported by NetworkManager. No I/O; all input comes from unauthenticated radio frames.
// Source: NetworkManager's D-Bus reference, AccessPoint, NM80211ApFlags and NM80211ApSecurityFlags.

import DBus

struct AccessPoint: Equatable {
  enum Security: Equatable {
    case open
    /// WPA or WPA2 with a password.
    case password
    /// WPA-Enterprise, which requires a login.
    case enterprise
    /// WEP, WPA3 only, or encryption without a password.
    case other
  }

  /// 0 to 32 arbitrary bytes; empty or all zero if hidden.
  var ssid: [UInt8]
  /// The frequency of the channel in MHz.
  var frequency: Int
  /// The signal strength in %.
  var strength: Int
  var security: Security

  var isHidden: Bool { ssid.allSatisfy { $0 == 0 } }
  /// Whether it uses the 2.4 GHz band, the only one that the toy's ESP8266 supports.
  var isIn2GHzBand: Bool { (2400..<2500).contains(frequency) }
}

extension AccessPoint {
  private static let privacy = 0x1
  private static let psk = 0x100
  private static let ieee8021X = 0x200
  private static let eapSuiteB192 = 0x2000
  /// An open network with a counterpart that uses Opportunistic Wireless Encryption (OWE).
  private static let oweTransition = 0x1000

  /// Reads NetworkManager's properties of an access point; nil if the frequency is missing.
  init?(_ properties: [String: DBusValue]) {
    guard let frequency = properties["Frequency"]?.int else { return nil }
    let securityFlags = (properties["WpaFlags"]?.int ?? 0) | (properties["RsnFlags"]?.int ?? 0)
    let security: Security
    if securityFlags & Self.psk != 0 {
      security = .password
    } else if securityFlags & (Self.ieee8021X | Self.eapSuiteB192) != 0 {
      security = .enterprise
    } else if securityFlags & ~Self.oweTransition == 0, (properties["Flags"]?.int ?? 0) & Self.privacy == 0 {
      security = .open
    } else {
      security = .other
    }
    self.init(
      ssid: properties["Ssid"]?.bytes ?? [], frequency: frequency, strength: min(100, max(0, properties["Strength"]?.int ?? 0)),
      security: security)
  }
}
