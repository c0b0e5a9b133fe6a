// How a kind's peers are reached over Bluetooth Low Energy: which GATT service and characteristics carry the bytes, what
// the peers call themselves, and how one that was only guessed is asked whether it is what it seems.

/// A Bluetooth UUID. Short ones (`FFF0`) stand on the base UUID of the Bluetooth Core specification (3.B.2.5.1).
public struct GATTUUID: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  private static let base = "-0000-1000-8000-00805f9b34fb"
  /// 32 hexadecimal digits in five groups, lower case.
  public let text: String

  /// Reads four or eight hexadecimal digits, or a whole UUID.
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

  /// A UUID of the tables; traps where it is none.
  public init(stringLiteral text: StaticString) {
    guard let uuid = GATTUUID(text.description) else { preconditionFailure("\(text) is no UUID") }
    self = uuid
  }

  /// The shortest form that reads back as this UUID: `FFF0`, or all of it.
  public var description: String {
    guard text.hasSuffix(Self.base) else { return text }
    let short = text.prefix(8).uppercased()
    return short.hasPrefix("0000") ? String(short.dropFirst(4)) : short
  }
}

/// A service and the characteristics that carry the bytes.
public struct GATTProfile: Sendable, Hashable {
  public var service: GATTUUID
  /// Where the peer's bytes come from; nil where it never says anything by itself.
  public var notify: GATTUUID?
  /// Where ours go; nil where the peer is only listened to.
  public var write: GATTUUID?

  /// A profile of these.
  public init(_ service: GATTUUID, notify: GATTUUID?, write: GATTUUID?) {
    self.service = service
    self.notify = notify
    self.write = write
  }
}

extension GATTProfile {
  /// HM-10 modules and their clones: one characteristic for both ways. Facts: JNHuaMao's manual.
  public static let hm10 = GATTProfile("FFE0", notify: "FFE1", write: "FFE1")
  /// Nordic's UART service. Facts: nRF Connect SDK, NUS.
  public static let nordicUART = GATTProfile(
    "6E400001-B5A3-F393-E0A9-E50E24DCCA9E", notify: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E", write: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")
}

/// What a link role says of its peers on BLE.
public struct GATTRole: Sendable {
  /// The profiles that such peers are known to have, the likeliest first.
  public var profiles: [GATTProfile]
  /// Parts of the names that such peers give themselves, for `ble:auto` and `vehiclectl scan`. Letter case does not count.
  public var names: [String]
  /// Bytes may be split and joined anywhere: a send that does not fit one write is cut. Otherwise it fails.
  public var isStream: Bool
  /// Writes are acknowledged where the characteristic can do both. Which is slower, and tells of every loss.
  public var prefersResponse: Bool
  /// How `ble:auto` asks a peer whether it is one of ours.
  public var probe: Probe?

  /// A question that does no harm to anybody, and whether an answer is that of a peer of ours.
  public struct Probe: Sendable {
    public var question: [UInt8]
    /// Takes all that came so far; nil while the answer is not whole.
    public var accepts: @Sendable ([UInt8]) -> Bool?

    /// A probe of this question.
    public init(_ question: [UInt8], accepts: @escaping @Sendable ([UInt8]) -> Bool?) {
      self.question = question
      self.accepts = accepts
    }
  }

  /// A role of these; `ble:auto` needs a probe.
  public init(profiles: [GATTProfile], names: [String], isStream: Bool, prefersResponse: Bool = true, probe: Probe? = nil) {
    self.profiles = profiles
    self.names = names
    self.isStream = isStream
    self.prefersResponse = prefersResponse
    self.probe = probe
  }

  /// Nothing is ever written to such peers.
  public var onlyListens: Bool { !profiles.isEmpty && profiles.allSatisfy { $0.write == nil } }

  /// Whether one of these services is one of ours.
  public func knows(_ services: [GATTUUID]) -> Bool { profiles.contains { services.contains($0.service) } }

  /// Whether a peer of this name may be one of ours.
  public func mayBe(named name: String) -> Bool {
    let name = name.lowercased()
    return names.contains { name.contains($0.lowercased()) }
  }
}
