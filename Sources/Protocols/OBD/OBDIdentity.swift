// Identification of the vehicle: VIN and calibration identifiers as properties. The VIN also shows whether the stored ECUs belong to this
// vehicle.

extension OBDMachine {
  private static let identityPeriod: Nanoseconds = 3600 * .second

  /// By index of the ECU.
  static let calibrationNames = (1...Discovery.maxControllers).map { $0 == 1 ? "calibration-ids" : "calibration-ids-\($0)" }

  /// The requests: the VIN of any ECU, the calibration identifiers of each.
  static func identityPages(of controllers: [Discovery.Controller], on bus: VehicleBus) -> [RequestLayout] {
    let vin = Property("vin", .string, lifetime: .retained, help: "Vehicle identification number (VIN); personal data")
    var pages = [identityPage(bus.everybody, VehicleInformation.vinRequest, vin)]
    for (place, controller) in controllers.enumerated() {
      // Before CAN only the first ECU that responds is heard.
      let target = bus.isCAN ? Target(answeringFrom: CANIdentifier(controller.identifier)) : place == 0 ? .unaddressed : nil
      guard let target else { continue }
      let property = Property(
        calibrationNames[place], .string, lifetime: .retained,
        help: "Calibration identifiers of ECU \(controller.text)"
      )
      pages.append(identityPage(target, VehicleInformation.calibrationRequest, property))
    }
    if !controllers.isEmpty {
      // ECUs that were slow or asleep during detection are queried later.
      pages.append(RequestLayout(PollRequest(bus.everybody, [0x01, 0x00], period: identityPeriod, for: .check), []))
    }
    return pages
  }

  /// The ECUs have reported their supported PIDs again. Detection is repeated once per connection if there are more.
  mutating func check(_ effects: inout Effects) {
    guard case .standard(let found) = vehicle, !hasChecked else { return }
    let isMore = reader.bitmaps(base: 0).contains { source, bitmap in
      guard let known = found.controllers.first(where: { $0.identifier == source ?? 0x7E8 }) else { return true }
      return StandardParameter.supported(bitmap, base: 0).contains { !known.parameters.contains($0) }
    }
    guard isMore else { return }
    hasChecked = true
    effects.append(.note("new ECUs or PIDs found: repeating vehicle detection"))
    findOutAnew(found)
  }

  /// The vehicle was silent: another one may respond now.
  mutating func askWhoAgain() {
    (isMissed, mark, hasChecked) = (false, nil, false)
    values.forgetScales()
    requestQueue.identifyAgain()
  }

  /// The identification is no longer valid.
  mutating func withdrawIdentity(_ reason: String, _ effects: inout Effects) {
    for request in requestQueue.requests where request.isIdentity { values.withdraw(request, reason, &effects) }
  }

  private mutating func findOutAnew(_ found: Discovery) {
    vehicle = .unknown
    begin(place(of: found) ?? attempt)
    errors = ErrorCounters()
  }

  private static func identityPage(_ target: Target, _ request: [UInt8], _ property: Property) -> RequestLayout {
    RequestLayout(
      PollRequest(target, request, period: identityPeriod, for: .identity), [DataRow(property) { _ in .absent(.notReported) }])
  }

  /// The response to such a request, possibly in several messages; nil: none.
  func identity(_ inquiry: PollRequest) -> (texts: VehicleInformation.Answer, source: UInt32?)? {
    let answers = reader.messages.filter {
      inquiry.target.isAnswered(from: $0.source, before: inquiry.answerer) && reader.bytes(of: $0).starts(with: inquiry.echo)
    }
    guard let source = answers.map(\.source).min(by: { $0 ?? 0 < $1 ?? 0 }) else { return nil }
    return (VehicleInformation.read(answers.filter { $0.source == source }.map { reader.bytes(of: $0) }), source)
  }

  /// Compares the reported VIN with the stored one.
  mutating func tell(_ texts: [String], at position: Int, _ effects: inout Effects) {
    let text = texts.joined(separator: ", ")
    values.publish(.value(.string(text)), at: position, at: lastTurn, &effects)
    guard values.name(at: position) == "vin", case .standard(var found) = vehicle, self.mark == nil else { return }
    // Once after each silence: vehicles do not change while polling, and ECUs that report changing VINs must not cause a loop.
    let mark = Discovery.mark(of: text)
    self.mark = mark
    if found.mark == mark { return }
    if found.mark != nil {
      effects.append(.note("the VIN has changed: repeating vehicle detection"))
      values.withdrawAll(except: position, "the VIN has changed", &effects)
      findOutAnew(found)
    } else {
      found.mark = mark
      vehicle = .standard(found)
      keepControllers(&effects)
    }
  }
}

extension Discovery {
  /// A hash of the VIN that does not reveal it (FNV-1a).
  static func mark(of vin: String) -> UInt32 { vin.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } }
}
