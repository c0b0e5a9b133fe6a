// Discovers the ECUs of an SAE J1979 vehicle and the PIDs that each ECU supports. Each request queries all ECUs for the support of 32 PIDs;
// ambiguous responses are rejected. Source: SAE J1979, service 01 with PIDs 00, 20, 40 …

/// The ECUs discovered so far, and what was learned about them.
struct ECUDiscovery: Sendable, Equatable {
  /// An ECU that responds to SAE J1979 requests.
  struct ECU: Sendable, Equatable {
    /// The identifier of its responses.
    let identifier: UInt32
    /// The supported PIDs.
    fileprivate(set) var parameters: [UInt8] = []

    /// The displayed form: `7E8`, `18DAF110`, on a K-line `10`.
    var text: String { ReplyReader.name(of: identifier) }
  }

  /// ISO 15765-4 defines eight addresses on 11-bit CAN.
  static let maxECUs = 8

  private(set) var bus: OBDProtocol
  private(set) var ecus: [ECU] = []

  /// The maximum number of PIDs in one request: 6, or 1 if the ECUs answer only one.
  private(set) var maxPIDsPerRequest = 6
  /// The hash of the VIN, or nil if the VIN is unknown.
  private(set) var vinHash: UInt32?
  /// The profile that the VIN has selected.
  private(set) var profile: VehicleProfile?

  init(on bus: OBDProtocol) { self.bus = bus }

  /// Sets the protocol that the adapter has reported.
  mutating func setBus(_ bus: OBDProtocol) { self.bus = bus }
  /// Limits requests to one PID, because the ECUs answer only one.
  mutating func limitToOnePID() { maxPIDsPerRequest = 1 }
  /// Sets the hash of the VIN.
  mutating func setVINHash(_ vinHash: UInt32) { self.vinHash = vinHash }

  /// Sets the profile that the VIN selects.
  mutating func setProfile(_ profile: VehicleProfile?) { self.profile = profile }

  /// Adds the PIDs that an ECU reports as supported: a bitmap of the 32 PIDs after `base`.
  mutating func add(_ bitmap: some Sequence<UInt8>, base: UInt8, from identifier: UInt32) {
    let found = StandardParameter.supported(bitmap, base: base)
    if let index = ecus.firstIndex(where: { $0.identifier == identifier }) {
      ecus[index].parameters += found.filter { !ecus[index].parameters.contains($0) }
    } else if ecus.count < Self.maxECUs {
      ecus.append(ECU(identifier: identifier, parameters: found))
      ecus.sort { $0.identifier < $1.identifier }
    }
  }

  /// Parses the stored form; nil if it is invalid.
  init?(stored bytes: [UInt8]) {
    bus = .automatic
    var stored: OBDProtocol?
    for line in bytes.split(separator: lineFeed) {
      let fields = line.split(separator: space)
      guard fields.count == 2 else { return nil }
      if fields[0].elementsEqual("bus".utf8) {
        stored = OBDProtocol(digits: fields[1])
        guard stored != nil else { return nil }
        continue
      }
      if fields[0].elementsEqual("mark".utf8) {
        vinHash = UInt32(String(decoding: fields[1], as: UTF8.self), radix: 16)
        continue
      }
      if fields[0].elementsEqual("profile".utf8) {
        profile = VehicleProfile(name: String(decoding: fields[1], as: UTF8.self))
        continue
      }
      if fields[0].elementsEqual("most".utf8) {
        maxPIDsPerRequest = fields[1].elementsEqual("1".utf8) ? 1 : maxPIDsPerRequest
        continue
      }
      let digits = Array(fields[1])
      guard let identifier = UInt32(String(decoding: fields[0], as: UTF8.self), radix: 16), digits.count.isMultiple(of: 2),
        digits.allSatisfy(isHexDigit), ecus.count < Self.maxECUs, digits.count <= 512
      else { return nil }
      let parameters = stride(from: 0, to: digits.count, by: 2).map { hexValue(digits[$0]) << 4 | hexValue(digits[$0 + 1]) }
      var seen: Set<UInt8> = []
      ecus.append(ECU(identifier: identifier, parameters: parameters.filter { seen.insert($0).inserted }))
    }
    guard let first = ecus.first else { return nil }
    bus = stored ?? OBDProtocol(impliedBy: first.identifier)
  }

  /// The stored form: the protocol (`bus`), the maximum number of PIDs if it is 1 (`most`), the VIN hash (`mark`), the name of the profile,
  /// then one line per ECU with its identifier and its PIDs in hex digits.
  var storedForm: [UInt8] {
    var text = "bus \(bus.digit)\n"
    if maxPIDsPerRequest == 1 { text += "most 1\n" }
    if let vinHash { text += "mark \(String(vinHash, radix: 16))\n" }
    if let profile { text += "profile \(profile.name)\n" }
    for ecu in ecus {
      text += "\(String(ecu.identifier, radix: 16, uppercase: true)) \(String(decoding: hexText(ecu.parameters), as: UTF8.self))\n"
    }
    return Array(text.utf8)
  }

  /// The base of the next request for supported PIDs; nil if no ECU supports higher PIDs.
  func next(after base: UInt8) -> UInt8? {
    guard base < 0xE0, ecus.contains(where: { $0.parameters.contains(base + 0x20) }) else { return nil }
    return base + 0x20
  }
}

extension ReplyReader {
  /// The bitmaps of the 32 PIDs after `base`, by ECU.
  func bitmaps(base: UInt8) -> [(source: UInt32?, bitmap: ArraySlice<UInt8>)] {
    messages.compactMap { message in
      let bytes = bytes(of: message)
      guard message.length >= 6, bytes.starts(with: [0x41, base]), Self.isOBDSource(message.source) else { return nil }
      return (message.source, bytes.dropFirst(2).prefix(4))
    }
  }
}

extension ECUDiscovery {
  /// A hash of the VIN that does not reveal it (FNV-1a).
  static func vinHash(of vin: String) -> UInt32 { vin.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } }
}
