// The requests other than the fast request (FastPoll.swift): those that the vehicle is known to answer, and the owner's custom signals.

struct ConfiguredRequests: Sendable {
  /// Whether only custom signals are requested in addition to the fast request.
  let isFastOnly: Bool
  let signals: [CustomSignal]
  let overrides: PropertyOverrides

  /// The requests for an electric car of this family, which is nil if it is unknown.
  func layouts(of family: VehicleFamily?, on bus: OBDProtocol) -> [RequestLayout] {
    add(signalsOn: bus, to: family.map { RequestLayout.records(of: $0) + RequestLayout.identity(of: [], on: .can) } ?? [])
  }

  /// The requests for an SAE J1979 vehicle with these ECUs, and with this profile if it has one. `bmsRequest`: the request that it has
  /// answered as an electric car.
  func layouts(of car: StandardCar, _ found: ECUDiscovery, _ profile: VehicleProfile?, bmsRequest: FastRequest?) -> [RequestLayout] {
    var identity = RequestLayout.identity(of: found.ecus, on: found.bus)
    if let bmsRequest, found.bus == .can { identity.append(.bmsCheck(bmsRequest)) }
    return add(signalsOn: found.bus, to: car.layouts + (profile?.layouts(on: found.bus) ?? []) + identity)
  }

  /// The requests for a vehicle that does not respond to service 01: those of its profile, other than the fast request.
  func layouts(of profile: VehicleProfile) -> [RequestLayout] {
    add(signalsOn: profile.bus, to: profile.split(on: profile.bus).others)
  }

  private func add(signalsOn bus: OBDProtocol, to known: [RequestLayout]) -> [RequestLayout] {
    (isFastOnly ? [] : known) + RequestLayout.custom(signals, on: bus)
  }
}
