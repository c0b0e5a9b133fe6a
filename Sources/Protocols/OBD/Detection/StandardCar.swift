// The requests to an SAE J1979 vehicle: engine speed and road speed at the device's rate (or as configured), all other supported PIDs at
// their own periods. On CAN up to six PIDs of one ECU share a request; on pre-CAN protocols each PID has its own. A PID that several ECUs
// support is requested from the first of them.

struct StandardCar {
  /// The fast request, which is polled at the device's rate, and its properties.
  let fast: RequestLayout
  /// The other requests and their properties.
  let layouts: [RequestLayout]

  /// The fast request.
  var request: FastRequest { FastRequest(fast.request.parameters, of: fast.request.target) }

  /// Engine speed and road speed.
  private static let fastest: [UInt8] = [0x0C, 0x0D]
  /// PIDs without a value to poll: the DTC of the freeze frame, and the scaling of other PIDs, which is requested from each ECU.
  private static let excluded: Set<UInt8> = [0x02, 0x4F, 0x50]
  /// The period of a request for scaling until it is answered.
  private static let scalingPeriod: Nanoseconds = 5 * .second

  /// A set of PIDs with the same period and priority. A period of 0 means that they are not polled.
  private struct Group: Hashable, Comparable {
    let period: Nanoseconds
    let priority: Priority
    let usesDeviceRate: Bool

    static func < (lhs: Group, rhs: Group) -> Bool {
      (lhs.period, lhs.priority, lhs.usesDeviceRate ? 0 : 1) < (rhs.period, rhs.priority, rhs.usesDeviceRate ? 0 : 1)
    }
  }

  /// The requests to these ECUs; nil if none of them supports a known PID.
  init?(_ found: ECUDiscovery, _ overrides: PropertyOverrides = PropertyOverrides()) {
    // The PIDs and the scaling PIDs that already have a request.
    var (covered, coveredScaling): (Set<UInt8>, Set<UInt8>) = (Self.excluded, [])
    var (layouts, scalingLayouts): ([RequestLayout], [RequestLayout]) = ([], [])
    let maxPIDs = found.bus.isCAN ? found.maxPIDsPerRequest : 1
    for ecu in found.ecus {
      let target = found.bus.isCAN ? Target(respondingFrom: CANIdentifier(ecu.identifier)) : .unaddressed
      guard let target else { continue }
      let known = ecu.parameters.compactMap { covered.contains($0) ? nil : StandardParameter.all[$0] }
      covered.formUnion(known.map(\.number))
      // All PIDs in a request must have the same period and priority.
      let groups = Dictionary(grouping: known) { parameter in
        let names = parameter.rows.map(\.property.name)
        return Group(
          period: overrides.period(of: names, default: Self.period(of: parameter, on: found.bus)) ?? 0,
          priority: overrides.priority(of: names),
          usesDeviceRate: Self.fastest.contains(parameter.number) && !overrides.hasPeriod(names))
      }
      for (group, parameters) in groups.sorted(by: { $0.key < $1.key }) where group.period > 0 {
        for start in stride(from: 0, to: parameters.count, by: maxPIDs) {
          let layout = RequestLayout(
            Array(parameters[start..<min(start + maxPIDs, parameters.count)]), of: target, period: group.period,
            usesDeviceRate: group.usesDeviceRate)
          layouts.append(layout)
        }
      }
      // On pre-CAN protocols a request goes to all ECUs, so one request is enough.
      let scaling = ecu.scalingPIDs(for: known).filter { found.bus.isCAN || coveredScaling.insert($0.number).inserted }
      for start in stride(from: 0, to: scaling.count, by: maxPIDs) {
        let parameters = Array(scaling[start..<min(start + maxPIDs, scaling.count)])
        scalingLayouts.append(RequestLayout(parameters, of: target, period: Self.scalingPeriod, priority: .high))
      }
    }
    // The fast request is the first one with engine speed or road speed, otherwise the one with the shortest period.
    let order = layouts.indices.sorted { (layouts[$0].request.period, $0) < (layouts[$1].request.period, $1) }
    guard let first = layouts.firstIndex(where: \.request.usesDeviceRate) ?? order.first else { return nil }
    fast = layouts.remove(at: first)
    self.layouts = scalingLayouts + layouts
  }

  /// The default poll period. On pre-CAN protocols, a request for one PID takes at least as long as a request for six PIDs on CAN, so PIDs
  /// are polled less often.
  private static func period(of parameter: StandardParameter, on bus: OBDProtocol) -> Nanoseconds {
    bus.isCAN || fastest.contains(parameter.number) ? parameter.period : 12 * parameter.period
  }
}
