// The properties of the vehicle, as far as it is known: declares them, publishes the name and the protocol of the vehicle, and returns the
// requests that read them.

struct VehicleDeclaration: Sendable {
  private let requests: ConfiguredRequests
  /// The bit rate of a CAN interface in bit/s, if it is known; an ELM327 uses that of the protocol.
  private let bitRate: Int?

  init(_ requests: ConfiguredRequests, bitRate: Int?) { (self.requests, self.bitRate) = (requests, bitRate) }

  /// The poll period of the properties of a layout, as configured.
  func period(of layout: RequestLayout) -> Nanoseconds? {
    requests.overrides.period(of: layout.rows.map(\.dataRow.property.name), default: layout.request.period)
  }

  /// The ECUs and PIDs of an SAE J1979 vehicle that are polled; nil if it supports no known PID.
  func car(_ found: ECUDiscovery, _ profile: VehicleProfile?) -> StandardCar? {
    StandardCar(found, requests.overrides.adapted(to: profile))
  }

  // MARK: Before the vehicle responds

  /// The properties that vehicles of this type have, or may have.
  func place(_ choice: VehicleChoice, on bus: OBDProtocol, period: Nanoseconds, _ values: inout ValueTable)
    -> ValueTable.PlacedRequests
  {
    let layouts = requests.layouts(of: choice == .eGMP ? .eGMP : nil, on: bus)
    return values.placeProperties(hasBatteryRecord: choice.mayHaveBMSRecord, fast: nil, layouts, period: period)
  }

  /// The properties of a vehicle that does not respond to service 01; `fast` is the fast request (FastPoll.swift) of its profile.
  func place(_ profile: VehicleProfile, fast: RequestLayout, period: Nanoseconds, _ values: inout ValueTable) -> ValueTable.PlacedRequests {
    values.placeProperties(hasBatteryRecord: false, fast: fast, requests.layouts(of: profile), period: period, isDetected: true)
  }

  // MARK: The detected vehicle

  func declare(_ family: VehicleFamily?, on bus: OBDProtocol, period: Nanoseconds, _ values: inout ValueTable, _ effects: inout Effects)
    -> ValueTable.PlacedRequests
  {
    values.declare(hasBatteryRecord: true, fast: nil, requests.layouts(of: family, on: bus), period: period, of: [], &effects)
  }

  func declare(
    _ car: StandardCar, _ found: ECUDiscovery, _ profile: VehicleProfile?, bmsRequest: FastRequest?, period: Nanoseconds,
    _ values: inout ValueTable, _ effects: inout Effects
  ) -> ValueTable.PlacedRequests {
    let layouts = requests.layouts(of: car, found, profile, bmsRequest: bmsRequest)
    return values.declare(hasBatteryRecord: false, fast: car.fast, layouts, period: period, of: found.ecus, &effects)
  }

  /// Publishes the name of the vehicle, and its protocol.
  func publish(_ vehicle: String, on bus: OBDProtocol, _ values: inout ValueTable, _ effects: inout Effects) {
    values.publish(vehicle: vehicle, &effects)
    if let name = bus.name(at: bitRate) { values.publish(.protocol, .string(name), &effects) }
  }
}
