// Recognises the vehicle from what its ECUs report: declares its properties, and gives the scheduler the requests that read them.

struct VehicleRecognition: Sendable {
  private let choice: VehicleChoice
  private let declaration: VehicleDeclaration
  private let profiles: ProfileSelection

  init(_ choice: VehicleChoice, _ declaration: VehicleDeclaration) {
    (self.choice, self.declaration, profiles) = (choice, declaration, ProfileSelection(choice))
  }

  /// Polls what the configured vehicle has, or may have, before it responds.
  func begin(on bus: OBDProtocol, _ scheduler: inout PollScheduler, _ values: inout ValueTable) {
    if let profile = profiles.withoutPIDs {
      let fast = profile.split(on: profile.bus).fast
      scheduler.begin(FastRequest(fast.request), every: declaration.period(of: fast))
      scheduler.apply(declaration.place(profile, fast: fast, period: scheduler.pace.period, &values))
    } else {
      scheduler.apply(declaration.place(choice, on: bus, period: scheduler.pace.period, &values))
    }
  }

  /// Publishes the name of a vehicle that does not respond to service 01, because it has responded to the fast request of its profile. Does
  /// nothing for other vehicles.
  func vehicleWithoutPIDsResponded(on bus: OBDProtocol, _ values: inout ValueTable, _ effects: inout Effects) {
    if let profile = profiles.withoutPIDs { declaration.publish(profile.title, on: bus, &values, &effects) }
  }

  /// Sets the detected vehicle from a BMS data record, which identifies the family. `record`: its position in the payload of the reply to
  /// the fast request.
  func recognise(
    _ reader: ReplyReader, record: Range<Int>, _ detection: inout ProtocolDetection, _ scheduler: inout PollScheduler,
    _ values: inout ValueTable, _ effects: inout Effects
  ) {
    let request = scheduler.fast.request
    let family = reader.payload.withUnsafeBufferPointer { VehicleFamily(request, record: UnsafeBufferPointer(rebasing: $0[record])) }
    if detection.setVehicle(family, &effects) {
      scheduler.apply(declaration.declare(family, on: detection.bus, period: scheduler.pace.period, &values, &effects))
    }
    declaration.publish("electric Hyundai or Kia" + (family.map { " (\($0.rawValue))" } ?? ""), on: detection.bus, &values, &effects)
  }

  /// Sets the detected vehicle to an SAE J1979 vehicle with these ECUs. Returns false if they support no known PID.
  func recognise(
    _ found: ECUDiscovery, _ detection: inout ProtocolDetection, _ scheduler: inout PollScheduler, _ values: inout ValueTable,
    _ effects: inout Effects
  ) -> Bool {
    let profile = profiles.profile(of: found)
    guard let car = declaration.car(found, profile) else { return false }
    detection.setVehicle(found)
    scheduler.begin(car.request, every: car.fast.request.usesDeviceRate ? nil : car.fast.request.period)
    let placed = declaration.declare(
      car, found, profile, bmsRequest: detection.bmsRequest, period: scheduler.pace.period, &values, &effects)
    scheduler.apply(placed)
    declaration.publish(profiles.title(of: found), on: found.bus, &values, &effects)
    return true
  }

  /// Selects the profile of the vehicle with the VIN in this reply. Returns false if the VIN changes nothing. Otherwise, all requests begin
  /// again, and that for the VIN as well: its reply cannot be published, because the positions of the properties have changed.
  func selectProfile(
    _ request: PollRequest, _ reader: ReplyReader, at now: Instant, _ detection: inout ProtocolDetection,
    _ scheduler: inout PollScheduler, _ values: inout ValueTable, _ effects: inout Effects
  ) -> Bool {
    let found = profiles.selection(afterReplyTo: request, reader, from: detection.vehicle, on: detection.bus, values)
    guard let found else { return false }
    scheduler.reset()
    _ = recognise(found, &detection, &scheduler, &values, &effects)
    scheduler.resume(at: now)
    return true
  }
}
