// Which vehicle it is, and what that means: which request goes first, which pages stand beside it. A person may say it; else the
// requests are tried in turn, and what was found is remembered. An electric Hyundai or Kia says at the head of its page which it is.

/// What the configuration says of the vehicle.
enum VehicleChoice: String, CaseIterable, Sendable {
  case auto
  case eGMP = "e-gmp"
  case hkmcEV = "hkmc-ev"
  case ice

  /// What is asked until something is answered, in this order.
  var candidates: [PageRequest] {
    switch self {
    case .auto: [.uds, .kwp, PageRequest(supportedFrom: 0)]
    case .eGMP: [.uds]
    case .hkmcEV: [.uds, .kwp]
    case .ice: [PageRequest(supportedFrom: 0)]
    }
  }
}

extension OBDMachine {
  /// The pages beside the fast one, in every vehicle: an owner's own.
  private var ownPages: [Page] {
    var pages: [Page] = []
    for signal in signals {
      let target = Target(signal.header, reply: signal.reply)
      // Signals of one answer are asked for once, as often as the most eager of them wants.
      if let index = pages.firstIndex(where: { $0.inquiry.target == target && $0.inquiry.request == signal.request.bytes }) {
        pages[index].inquiry.period = min(pages[index].inquiry.period, signal.period)
        pages[index].rows.append((nil, signal.row))
      } else {
        pages.append(
          Page(Inquiry(target, signal.request.bytes, echo: signal.request.echo, period: signal.period), [signal.row], isOwn: true))
      }
    }
    return pages
  }

  /// As far as the vehicle is known by now.
  mutating func layOutFirst() {
    layOut(hasBatteryPage: choice != .ice, fast: nil, pages(of: choice == .eGMP ? .eGMP : nil))
  }

  private func pages(of family: VehicleFamily?) -> [Page] {
    let known = family.map { family in
      family.pages.map { page in
        Page(Inquiry(Target(CANIdentifier(page.header), reply: CANIdentifier(page.reply)), page.request, period: page.period), page.rows)
      }
    }
    return (isFastOnly ? [] : known ?? []) + ownPages
  }

  /// The next request is tried, until one is answered.
  mutating func tryNextCandidate() {
    streaks.isSettled = false
    streaks.refusals += 1
    let isStandard = request.service == 0x01
    // Parameters that are not answered any more: the controllers are asked anew when it is their turn.
    if !request.parameters.isEmpty { vehicle = .unknown }
    let current = candidates.firstIndex { isStandard ? $0.isDiscovery : $0 == request } ?? 0
    request = candidates[(current + 1) % candidates.count]
    if request.isDiscovery, case .standard(let found) = vehicle, let car = StandardCar(Discovery(found)) { request = car.request }
    startDiscoveryAnew()
    count = FrameCount()
    writePollBytes()
  }

  /// What was told so far may have been another vehicle's.
  mutating func startDiscoveryAnew() {
    discovery = Discovery()
    if request.isDiscovery { request = PageRequest(supportedFrom: 0) }
  }

  /// The battery page was answered: it tells which car this is.
  mutating func recognise(_ data: Range<Int>, _ effects: inout Effects) {
    let family = reader.payload.withUnsafeBufferPointer { VehicleFamily(request, page: UnsafeBufferPointer(rebasing: $0[data])) }
    if vehicle != .electric(family) {
      vehicle = .electric(family)
      declare(hasBatteryPage: true, fast: nil, pages(of: family), &effects)
      if storedControllers != nil { effects.append(.store(key: "controllers", [])) }
      storedControllers = nil
    }
    publish(.vehicle, .string("electric Hyundai or Kia" + (family.map { " (\($0.rawValue))" } ?? "")), &effects)
  }

  /// The controllers have said what they know: a car of the emission standard. False where that is nothing that we do.
  mutating func recognise(_ found: Discovery, _ effects: inout Effects) -> Bool {
    guard let car = StandardCar(found) else { return false }
    request = car.request
    count = FrameCount()
    writePollBytes()
    let pages = (isFastOnly ? [] : car.pages) + ownPages
    if vehicle != .standard(found.controllers) {
      vehicle = .standard(found.controllers)
      declare(hasBatteryPage: false, fast: car.fast, pages, &effects)
    }
    let names = found.controllers.map { CANIdentifier($0.identifier).text }.joined(separator: ", ")
    publish(.vehicle, .string("standard OBD-II (\(names))"), &effects)
    return true
  }
}

/// What a device has found its vehicle to be.
enum Vehicle: Equatable, Sendable {
  case unknown
  case electric(VehicleFamily?)
  case standard([Discovery.Controller])
}
