// Identification of the vehicle: VIN and calibration identifiers as properties. The VIN also shows whether the stored ECUs belong to this
// vehicle.

extension RequestLayout {
  private static let identityPeriod: Nanoseconds = 3600 * .second

  /// The names of the properties with the calibration identifiers, by index of the ECU.
  static let calibrationNames = (1...ECUDiscovery.maxECUs).map { $0 == 1 ? "calibration-ids" : "calibration-ids-\($0)" }

  /// The requests that identify the vehicle: the VIN from any ECU, the calibration identifiers of each ECU, and the supported PIDs again.
  static func identity(of ecus: [ECUDiscovery.ECU], on bus: OBDProtocol) -> [RequestLayout] {
    let vin = Property("vin", .string, lifetime: .retained, group: .identity, help: "Vehicle identification number (VIN); personal data")
    var layouts = [identity(bus.allECUs, VehicleInformation.vinRequest, vin)]
    for (index, ecu) in ecus.enumerated() {
      // On pre-CAN protocols, only the response of the first ECU counts.
      let target = bus.isCAN ? Target(respondingFrom: CANIdentifier(ecu.identifier)) : index == 0 ? .unaddressed : nil
      guard let target else { continue }
      let property = Property(
        calibrationNames[index], .string, lifetime: .retained, group: .identity, rank: .detail,
        help: "Calibration identifiers of ECU \(ecu.text)"
      )
      layouts.append(identity(target, VehicleInformation.calibrationRequest, property))
    }
    if !ecus.isEmpty {
      // Finds ECUs that were slow or asleep during detection.
      layouts.append(RequestLayout(PollRequest(bus.allECUs, [0x01, 0x00], period: identityPeriod, for: .supportCheck), []))
    }
    return layouts
  }

  /// The request for BMS data of a car that is known to be electric and was detected as a standard vehicle: a response was lost, or the BMS
  /// was asleep.
  static func bmsCheck(_ request: FastRequest) -> RequestLayout {
    RequestLayout(PollRequest(request.target, request.bytes, period: 5 * .second, for: .bmsCheck), [])
  }

  private static func identity(_ target: Target, _ request: [UInt8], _ property: Property) -> RequestLayout {
    RequestLayout(
      PollRequest(target, request, period: identityPeriod, for: .identity), [DataRow(property) { _ in .absent(.notReported) }])
  }
}

extension ReplyReader {
  /// The strings in the response to an identification request, and their source; or nil if there is no response. The response can consist
  /// of several messages.
  func identity(_ request: PollRequest) -> (answer: VehicleInformation.Answer, source: UInt32?)? {
    let answers = messages.filter {
      request.target.accepts($0.source, responder: request.responder) && bytes(of: $0).starts(with: request.responsePrefix)
    }
    guard let source = answers.map(\.source).min(by: { $0 ?? 0 < $1 ?? 0 }) else { return nil }
    return (VehicleInformation.read(answers.filter { $0.source == source }.map { bytes(of: $0) }), source)
  }
}
