// The polling of an SAE J1979 vehicle: engine and road speed at the device's rate (or as configured), all other supported PIDs as often as
// they change. On CAN up to six PIDs of one ECU share a request; before CAN each has its own. A PID of several ECUs is requested from the
// first.

struct StandardCar {
  /// PIDs polled at the device's rate.
  let fast: OBDMachine.Page
  let pages: [OBDMachine.Page]

  var request: PageRequest { PageRequest(fast.inquiry.parameters, of: fast.inquiry.target) }

  private static let fastest: [UInt8] = [0x0C, 0x0D]
  /// PIDs that follow the accelerator pedal.
  private static let lively: Set<UInt8> = [
    0x04, 0x0B, 0x0E, 0x10, 0x11, 0x43, 0x44, 0x45, 0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x5A, 0x5E, 0x61, 0x62,
  ]
  /// PIDs that change in minutes or never.
  private static let slow: Set<UInt8> = [0x01, 0x1C, 0x1F, 0x21, 0x30, 0x31, 0x41, 0x4D, 0x4E, 0x51, 0x5F, 0xA6]
  /// PIDs requested elsewhere: the DTC of the freeze frame, bitmaps, and the scaling of each ECU.
  private static let left: Set<UInt8> = [0x02, 0x4F, 0x50]
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
  init?(_ found: Discovery, _ wishes: PropertyWishes = PropertyWishes()) {
    var (taken, asked): (Set<UInt8>, Set<UInt8>) = (Self.left, [])
    var (pages, scalePages): ([OBDMachine.Page], [OBDMachine.Page]) = ([], [])
    let most = found.bus.isCAN ? found.most : 1
    for controller in found.controllers {
      let target = found.bus.isCAN ? Target(answeringFrom: CANIdentifier(controller.identifier)) : .unaddressed
      guard let target else { continue }
      let known = controller.parameters.compactMap { taken.contains($0) ? nil : StandardParameter.all[$0] }
      taken.formUnion(known.map(\.number))
      // PIDs of one request share the configured override.
      let groups = Dictionary(grouping: known) { parameter in
        let names = parameter.rows.map(\.property.name)
        return Group(
          period: wishes.period(of: names, usual: Self.period(of: parameter.number, on: found.bus)) ?? 0,
          priority: wishes.priority(of: names),
          isFast: Self.fastest.contains(parameter.number) && !wishes.hasPeriod(names))
      }
      for (group, parameters) in groups.sorted(by: { $0.key < $1.key }) where group.period > 0 {
        for start in stride(from: 0, to: parameters.count, by: most) {
          let page = OBDMachine.Page(Array(parameters[start..<min(start + most, parameters.count)]), of: target, period: group.period)
          pages.append(page)
          pages[pages.count - 1].inquiry.isFast = group.isFast
        }
      }
      // Before CAN requests are functional: each is sent once.
      let scales = controller.scales(of: known).filter { found.bus.isCAN || asked.insert($0.number).inserted }
      for start in stride(from: 0, to: scales.count, by: most) {
        var page = OBDMachine.Page(Array(scales[start..<min(start + most, scales.count)]), of: target, period: Self.scalePeriod)
        page.inquiry.priority = .high
        scalePages.append(page)
      }
    }
    // The first ECU with one of these PIDs, or the PIDs with the shortest period.
    let order = pages.indices.sorted { (pages[$0].inquiry.period, $0) < (pages[$1].inquiry.period, $1) }
    guard let first = pages.firstIndex(where: \.inquiry.isFast) ?? order.first else { return nil }
    fast = pages.remove(at: first)
    self.pages = scalePages + pages
  }

  private static func period(of number: UInt8, on bus: VehicleBus) -> Nanoseconds {
    if fastest.contains(number) { return .second / 20 }
    let period = lively.contains(number) ? .second / 2 : slow.contains(number) ? 60 * .second : 5 * .second
    // Before CAN one PID takes at least as long as six on CAN.
    return bus.isCAN ? period : 12 * period
  }
}
