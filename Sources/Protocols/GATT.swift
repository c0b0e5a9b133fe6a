// How the peers of a kind are reached over Bluetooth Low Energy: GATT services and characteristics, advertised names, and the probe that
// verifies a peer that `ble:auto` has found.

/// A Bluetooth UUID. Short UUIDs (`FFF0`) extend the base UUID of the Bluetooth Core specification (3.B.2.5.1).
public struct GATTUUID: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  private static let base = "-0000-1000-8000-00805f9b34fb"
  /// 32 hexadecimal digits in five groups, lower case.
  public let text: String

  /// Parses four or eight hexadecimal digits, or a full UUID; nil if the text is none of these.
  public init?(_ text: String) {
    let lower = text.lowercased()
    guard lower.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) || $0 == 0x2D }) else { return nil }
    let groups = lower.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count)
    switch groups {
    case [4]: self.text = "0000" + lower + Self.base
    case [8]: self.text = lower + Self.base
    case [8, 4, 4, 4, 12]: self.text = lower
    default: return nil
    }
  }

  /// A UUID literal; traps if it is invalid.
  public init(stringLiteral text: StaticString) {
    guard let uuid = GATTUUID(text.description) else { preconditionFailure("\(text) is not a UUID") }
    self = uuid
  }

  /// The shortest form that parses back to this UUID: `FFF0`, or the full text.
  public var description: String {
    guard text.hasSuffix(Self.base) else { return text }
    let short = text.prefix(8).uppercased()
    return short.hasPrefix("0000") ? String(short.dropFirst(4)) : short
  }
}

/// A service and the characteristics that carry the bytes.
public struct GATTProfile: Sendable, Hashable {
  public var service: GATTUUID
  /// The characteristic that the peer sends on; nil if it never sends.
  public var notify: GATTUUID?
  /// The characteristic that the daemon writes to; nil if nothing is written to the peer.
  public var write: GATTUUID?

  /// Creates a profile.
  public init(_ service: GATTUUID, notify: GATTUUID?, write: GATTUUID?) {
    self.service = service
    self.notify = notify
    self.write = write
  }
}

extension GATTProfile {
  /// HM-10 modules and their clones: one characteristic for both directions. Source: JNHuaMao's manual.
  public static let hm10 = GATTProfile("FFE0", notify: "FFE1", write: "FFE1")
  /// Nordic's UART service. Source: nRF Connect SDK, NUS.
  public static let nordicUART = GATTProfile(
    "6E400001-B5A3-F393-E0A9-E50E24DCCA9E", notify: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E", write: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")
}

/// What the peers of a kind look like on BLE: their services, their names, and how to write to them.
public struct PeripheralDescription: Sendable {
  /// The profiles that such peers are known to have, the most likely first.
  public var profiles: [GATTProfile]
  /// Parts of the names that such peers advertise, for `ble:auto` and `vehiclectl scan`. Case-insensitive.
  public var names: [String]
  /// Whether the bytes are a stream: a send that is longer than one write is split. If false, such a send fails.
  public var isStream: Bool
  /// Whether acknowledged writes are used if the characteristic supports both kinds. They are slower, but report every loss.
  public var prefersAcknowledgedWrites: Bool
  /// How `ble:auto` verifies that a peer matches.
  public var probe: Probe?

  /// A harmless request, and a check of the reply to it.
  public struct Probe: Sendable {
    public var request: [UInt8]
    /// Checks all bytes received so far: true if the peer matches, false if it does not, nil while the reply is incomplete.
    public var accepts: @Sendable ([UInt8]) -> Bool?

    /// Creates a probe.
    public init(_ request: [UInt8], accepts: @escaping @Sendable ([UInt8]) -> Bool?) {
      self.request = request
      self.accepts = accepts
    }
  }

  /// Creates a description; `ble:auto` requires a probe.
  public init(profiles: [GATTProfile], names: [String], isStream: Bool, prefersAcknowledgedWrites: Bool = true, probe: Probe? = nil) {
    self.profiles = profiles
    self.names = names
    self.isStream = isStream
    self.prefersAcknowledgedWrites = prefersAcknowledgedWrites
    self.probe = probe
  }

  /// Whether the daemon never writes to such peers.
  public var isNotifyOnly: Bool { !profiles.isEmpty && profiles.allSatisfy { $0.write == nil } }

  /// Whether one of these services belongs to such peers.
  public func matches(services: [GATTUUID]) -> Bool { profiles.contains { services.contains($0.service) } }

  /// Whether such a peer may have this name.
  public func matches(name: String) -> Bool {
    let name = name.lowercased()
    return names.contains { name.contains($0.lowercased()) }
  }
}
