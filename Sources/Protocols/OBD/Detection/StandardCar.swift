// The polling of an SAE J1979 vehicle: engine and road speed at the device's rate (or as configured), all other supported PIDs as often as
// they change. On CAN up to six PIDs of one ECU share a request; before CAN each has its own. A PID of several ECUs is requested from the
// first.

struct StandardCar {
  /// PIDs polled at the device's rate.
  let fast: RequestLayout
  let layouts: [RequestLayout]

  var request: RecordRequest { RecordRequest(fast.request.parameters, of: fast.request.target) }

  /// Engine and road speed.
  private static let fastest: [UInt8] = [0x0C, 0x0D]
  /// PIDs requested elsewhere: the DTC of the freeze frame, bitmaps, and the scaling of each ECU.
  private static let excluded: Set<UInt8> = [0x02, 0x4F, 0x50]
  /// The period of a request for scaling until it is answered.
  private static let scalePeriod: Nanoseconds = 5 * .second

  /// PIDs with the same period and priority; without a period they are not polled.
  private struct Group: Hashable, Comparable {
    let period: Nanoseconds
    let priority: Priority
    let isFast: Bool

    static func < (one: Group, other: Group) -> Bool {
      (one.period, one.priority, one.isFast ? 0 : 1) < (other.period, other.priority, other.isFast ? 0 : 1)
    }
  }

  /// nil if no ECU supports a known PID.
  init?(_ found: Discovery, _ overrides: PropertyOverrides = PropertyOverrides()) {
    // PIDs that are in a request already, and scaling PIDs that are.
    var (covered, coveredScales): (Set<UInt8>, Set<UInt8>) = (Self.excluded, [])
    var (layouts, scaleLayouts): ([RequestLayout], [RequestLayout]) = ([], [])
    let maxPIDs = found.bus.isCAN ? found.maxPIDsPerRequest : 1
    for ecu in found.ecus {
      let target = found.bus.isCAN ? Target(respondingFrom: CANIdentifier(ecu.identifier)) : .unaddressed
      guard let target else { continue }
      let known = ecu.parameters.compactMap { covered.contains($0) ? nil : StandardParameter.all[$0] }
      covered.formUnion(known.map(\.number))
      // PIDs of one request share the configured override.
      let groups = Dictionary(grouping: known) { parameter in
        let names = parameter.rows.map(\.property.name)
        return Group(
          period: overrides.period(of: names, usual: Self.period(of: parameter, on: found.bus)) ?? 0,
          priority: overrides.priority(of: names),
          isFast: Self.fastest.contains(parameter.number) && !overrides.hasPeriod(names))
      }
      for (group, parameters) in groups.sorted(by: { $0.key < $1.key }) where group.period > 0 {
        for start in stride(from: 0, to: parameters.count, by: maxPIDs) {
          let layout = RequestLayout(
            Array(parameters[start..<min(start + maxPIDs, parameters.count)]), of: target, period: group.period, isFast: group.isFast)
          layouts.append(layout)
        }
      }
      // Before CAN requests are functional: each is sent once.
      let scales = ecu.scales(of: known).filter { found.bus.isCAN || coveredScales.insert($0.number).inserted }
      for start in stride(from: 0, to: scales.count, by: maxPIDs) {
        let parameters = Array(scales[start..<min(start + maxPIDs, scales.count)])
        scaleLayouts.append(RequestLayout(parameters, of: target, period: Self.scalePeriod, priority: .high))
      }
    }
    // The first ECU with one of these PIDs, or the PIDs with the shortest period.
    let order = layouts.indices.sorted { (layouts[$0].request.period, $0) < (layouts[$1].request.period, $1) }
    guard let first = layouts.firstIndex(where: \.request.isFast) ?? order.first else { return nil }
    fast = layouts.remove(at: first)
    self.layouts = scaleLayouts + layouts
  }

  /// Before CAN one PID takes at least as long as six on CAN.
  private static func period(of parameter: StandardParameter, on bus: VehicleBus) -> Nanoseconds {
    bus.isCAN || fastest.contains(parameter.number) ? parameter.period : 12 * parameter.period
  }
}
