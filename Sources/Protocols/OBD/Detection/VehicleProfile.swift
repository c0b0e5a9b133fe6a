// Vehicle profiles: what a model reports beyond SAE J1979, as signals like those of signals.d. The tables are in the files in Vehicles; each
// must be listed in `all`. A profile is configured by its name, or selected by the VIN.

/// The signals of a model, and the VINs by which it is recognised.
struct VehicleProfile: Sendable, Equatable {
  /// The name in the configuration, such as nissan-leaf.
  let name: String
  /// The name of the model as published.
  let title: String
  /// The beginnings of VINs; `?` is any character.
  private let vins: [String]
  /// The length of the CAN identifiers of the model, 11 or 29 bits, if the VIN is not enough to select it; or nil.
  private let bits: Int?
  /// Whether the model responds to service 01, so that a configured profile adds to the PIDs that the ECUs support.
  let hasStandardPIDs: Bool
  /// The properties of SAE J1979 that signals of the profile replace.
  let replaces: Set<String>
  let signals: [CustomSignal]

  static let all: [VehicleProfile] = [bmwI3, chevroletBolt, nissanLeaf, renaultZoe, vwMeb]

  init(
    _ name: String, _ title: String, vins: [String], bits: Int?, hasStandardPIDs: Bool, replaces: Set<String>, signals: [CustomSignal]
  ) {
    (self.name, self.title, self.vins, self.bits, self.hasStandardPIDs) = (name, title, vins, bits, hasStandardPIDs)
    (self.replaces, self.signals) = (replaces, signals)
  }

  /// The profile with this name; nil for any other text.
  init?(name: String) {
    guard let profile = Self.all.first(where: { $0.name == name }) else { return nil }
    self = profile
  }

  /// The profile of the vehicle with this VIN on this protocol; nil if there is none.
  init?(vin: String, on bus: OBDProtocol) {
    guard let profile = Self.all.first(where: { $0.matches(vin, on: bus) }) else { return nil }
    self = profile
  }

  static func == (left: VehicleProfile, right: VehicleProfile) -> Bool { left.name == right.name }

  private func matches(_ vin: String, on bus: OBDProtocol) -> Bool {
    guard bits.map({ $0 == (bus.is29Bit ? 29 : 11) }) ?? bus.isCAN else { return false }
    return vins.contains { pattern in
      pattern.utf8.count <= vin.utf8.count && zip(pattern.utf8, vin.utf8).allSatisfy { $0 == UInt8(ascii: "?") || $0 == $1 }
    }
  }

  /// The protocol of a model that does not respond to service 01.
  var bus: OBDProtocol { signals.first?.header.is29Bit == true ? OBDProtocol(number: 7) : .can }

  /// The requests of the profile.
  func layouts(on bus: OBDProtocol) -> [RequestLayout] { RequestLayout.custom(signals, on: bus, isCustom: false) }

  /// The fast request of a model that does not respond to service 01, and the other requests. The fast request is the first one with the
  /// shortest period.
  func split(on bus: OBDProtocol) -> (fast: RequestLayout, others: [RequestLayout]) {
    var layouts = layouts(on: bus)
    let period = layouts.map(\.request.period).min()
    let fast = layouts.remove(at: layouts.firstIndex { $0.request.period == period } ?? 0)
    return (fast, layouts)
  }
}
