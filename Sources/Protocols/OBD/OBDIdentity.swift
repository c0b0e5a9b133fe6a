// What a vehicle says of itself once: its number and the calibrations of its controllers, as properties. The number also tells one
// vehicle from another: what was kept of another's controllers is not this one's.

extension OBDMachine {
  private static let identityPeriod: Nanoseconds = 3600 * .second

  /// The questions: the number of whoever has it, the calibrations of each controller.
  static func identityPages(of controllers: [Discovery.Controller], on bus: VehicleBus) -> [Page] {
    let vin = Property("vin", .string, lifetime: .retained, help: "Number of the vehicle, as its controllers tell it; personal")
    var pages = [identityPage(bus.everybody, VehicleInformation.vinRequest, vin)]
    for (place, controller) in controllers.enumerated() {
      // Before CAN whoever answers first is the one that is heard.
      let target = bus.isCAN ? Target(answeringFrom: CANIdentifier(controller.identifier)) : place == 0 ? .unaddressed : nil
      guard let target else { continue }
      let property = Property(
        "calibration-ids" + (place == 0 ? "" : "-\(place + 1)"), .string, lifetime: .retained,
        help: "Programmes of controller \(controller.text)"
      )
      pages.append(identityPage(target, VehicleInformation.calibrationRequest, property))
    }
    return pages
  }

  private static func identityPage(_ target: Target, _ request: [UInt8], _ property: Property) -> Page {
    var inquiry = Inquiry(target, request, period: identityPeriod)
    inquiry.isIdentity = true
    return Page(inquiry, [DataRow(property) { _ in .absent(.notReported) }])
  }

  /// The answer to such a question, which may be several messages; nil: there is none.
  func identity(_ inquiry: Inquiry) -> (texts: VehicleInformation.Answer, source: UInt32?)? {
    let answers = reader.messages.filter {
      inquiry.target.isAnswered(from: $0.source, before: inquiry.answerer) && reader.bytes(of: $0).starts(with: inquiry.echo)
    }
    guard let source = answers.map(\.source).min(by: { $0 ?? 0 < $1 ?? 0 }) else { return nil }
    return (VehicleInformation.read(answers.filter { $0.source == source }.map { reader.bytes(of: $0) }), source)
  }

  /// The vehicle has told its number: is it the one whose controllers we know?
  mutating func tell(_ texts: [String], at position: Int, _ effects: inout Effects) {
    let text = texts.joined(separator: ", ")
    publish(.value(.string(text)), at: position, &effects)
    guard schema.properties[position].name == "vin", case .standard(var found) = vehicle, !hasNumber else { return }
    // Once on each connection: vehicles are not exchanged under way, and controllers that tell another number each time must not matter.
    hasNumber = true
    let mark = Discovery.mark(of: text)
    if found.mark == mark { return }
    if found.mark != nil {
      effects.append(.note("this is another vehicle than before: what it has is found out anew"))
      vehicle = .unknown
      begin(place(of: found) ?? attempt)
      streaks = Streaks()
    } else {
      found.mark = mark
      vehicle = .standard(found)
      keepControllers(&effects)
    }
  }
}

extension Discovery {
  /// What tells a vehicle's number from another's and does not tell the number (FNV-1a).
  static func mark(of vin: String) -> UInt32 { vin.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } }
}
