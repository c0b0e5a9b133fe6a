// Selects the profile of the vehicle: the configured one, or the one of its VIN.

struct ProfileSelection: Sendable {
  private let choice: VehicleChoice

  init(_ choice: VehicleChoice) { self.choice = choice }

  /// The configured profile of a vehicle that does not respond to service 01. Its properties are declared from the start.
  var withoutPIDs: VehicleProfile? {
    if case .profile(let profile) = choice, !profile.hasStandardPIDs { profile } else { nil }
  }

  /// The profile of a vehicle with these ECUs: the configured one, or the one that the VIN has selected.
  func profile(of found: ECUDiscovery) -> VehicleProfile? {
    switch choice {
    case .auto: found.profile
    case .profile(let profile): profile
    case .eGMP, .hkmcEV, .generic: nil
    }
  }

  /// The name of a vehicle with these ECUs.
  func title(of found: ECUDiscovery) -> String {
    "\(profile(of: found)?.title ?? "standard OBD-II") (\(found.ecus.map(\.text).joined(separator: ", ")))"
  }

  /// The ECUs with the profile that the VIN in a reply selects. Nil if the reply has no VIN, the profile is already selected, or the VIN
  /// belongs to another vehicle than the detected one.
  func selection(
    afterReplyTo request: PollRequest, _ reader: ReplyReader, from vehicle: Vehicle, on bus: OBDProtocol, _ values: ValueTable
  ) -> ECUDiscovery? {
    guard choice == .auto, case .standard(var found) = vehicle, request.isIdentity, let position = request.rows.first?.position,
      values.name(at: position) == "vin", case .texts(let texts)? = reader.identity(request)?.answer, let vin = texts.first,
      found.vinHash.map({ $0 == ECUDiscovery.vinHash(of: vin) }) ?? true
    else { return nil }
    let profile = VehicleProfile(vin: vin, on: bus)
    guard profile != found.profile else { return nil }
    found.setProfile(profile)
    return found
  }
}
