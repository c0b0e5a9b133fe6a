// Which vehicle it is, and what that means: which request goes first, which pages stand beside it. A person may say it; else the
// requests are tried in turn, and what was found is remembered. An electric Hyundai or Kia says at the head of its page which it is.

/// What the configuration says of the vehicle.
enum VehicleChoice: String, CaseIterable, Sendable {
  case auto
  case eGMP = "e-gmp"
  case hkmcEV = "hkmc-ev"
  case ice

  /// What is asked until something is answered, in this order.
  var attempts: [Attempt] {
    switch self {
    case .auto: [Attempt(.can, .uds), Attempt(.can, .kwp), Attempt(discoveryOn: .can), Attempt(discoveryOn: .search)]
    case .eGMP: [Attempt(.can, .uds)]
    case .hkmcEV: [Attempt(.can, .uds), Attempt(.can, .kwp)]
    case .ice: [Attempt(discoveryOn: .can), Attempt(discoveryOn: .search)]
    }
  }
}

/// A request to begin with, and the bus where it may be answered.
struct Attempt: Equatable, Sendable {
  let bus: VehicleBus
  let request: PageRequest

  init(_ bus: VehicleBus, _ request: PageRequest) { (self.bus, self.request) = (bus, request) }

  init(discoveryOn bus: VehicleBus) { self.init(bus, PageRequest(supportedFrom: 0, on: bus)) }
}

extension OBDMachine {
  private static let searchEvery = 10

  /// The pages beside the fast one, in every vehicle: an owner's own.
  private var ownPages: [Page] {
    var pages: [Page] = []
    for signal in signals {
      let target = bus.target(of: signal)
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
    let identity = known == nil ? [] : Self.identityPages(of: [], on: .can)
    return (isFastOnly ? [] : (known ?? []) + identity) + ownPages
  }

  /// The next request is tried, until one is answered. False once all were tried: then it is time for a pause.
  mutating func tryNext() -> Bool {
    streaks.isSettled = false
    streaks.refusals += 1
    // Parameters that are not answered any more: the controllers are asked anew when it is their turn.
    if !request.parameters.isEmpty { vehicle = .unknown }
    let places = places
    begin(places.first { $0 > attempt } ?? places[0])
    guard streaks.refusals >= places.count else { return true }
    streaks.refusals = 0
    // What was tuned may be too quick for what is there now.
    if timings.usual == .initial { recallTiming() } else { timings.usual = .initial }
    return false
  }

  /// The attempts that are worth while: a vehicle that is known and sleeps has no other bus, but now and then it is another vehicle.
  private var places: [Int] {
    let isKnown = storedRequest != nil || storedControllers != nil
    let searches = !isKnown || streaks.backOffs % Self.searchEvery == 0
    return attempts.indices.filter { searches || attempts[$0].bus != .search || $0 == storedControllers.flatMap(place) }
  }

  /// Which attempt finds such a vehicle.
  func place(of found: Discovery) -> Int? {
    attempts.firstIndex { $0.request.isDiscovery && $0.bus == found.bus } ?? attempts.firstIndex { $0.bus == .search }
  }

  /// What this attempt asks: of controllers that are known their parameters, or first on the bus that they had.
  mutating func begin(_ place: Int) {
    attempt = place
    var next = attempts[place]
    if case .standard(let found) = vehicle, self.place(of: found) == place, let fastRequest {
      next = Attempt(found.bus, fastRequest)
    } else if let known = storedControllers, self.place(of: known) == place, streaks.backOffs % Self.searchEvery != 0 {
      next = Attempt(discoveryOn: known.bus)
    }
    (bus, request) = (next.bus, next.request)
    follow(request == fastRequest ? fastPeriod : nil)
    (discovery, discoveryMisses, count, answerer, doubt) = (Discovery(on: bus), 0, FrameCount(), nil, nil)
    writePollBytes()
  }

  /// The battery page was answered: it tells which car this is.
  mutating func recognise(_ data: Range<Int>, _ effects: inout Effects) {
    let family = reader.payload.withUnsafeBufferPointer { VehicleFamily(request, page: UnsafeBufferPointer(rebasing: $0[data])) }
    if vehicle != .electric(family) {
      vehicle = .electric(family)
      scales = Scales()
      declare(hasBatteryPage: true, fast: nil, pages(of: family), &effects)
      if storedControllers != nil { effects.append(.store(key: "controllers", [])) }
      storedControllers = nil
    }
    publish(.vehicle, .string("electric Hyundai or Kia" + (family.map { " (\($0.rawValue))" } ?? "")), &effects)
    publishBus(&effects)
  }

  /// The controllers have said what they know: a car of the emission standard. False where that is nothing that we do.
  mutating func recognise(_ found: Discovery, _ effects: inout Effects) -> Bool {
    guard let car = StandardCar(found, wishes) else { return false }
    var found = found
    found.mark = mark ?? found.mark
    (bus, request, failsTogether) = (found.bus, car.request, .no)
    fastPeriod = car.fast.inquiry.isFast ? nil : car.fast.inquiry.period
    follow(fastPeriod)
    (count, answerer) = (FrameCount(), nil)
    writePollBytes()
    let pages = (isFastOnly ? [] : car.pages + Self.identityPages(of: found.controllers, on: found.bus)) + ownPages
    fastRequest = car.request
    vehicle = .standard(found)
    scales = Scales(of: found.controllers)
    declare(hasBatteryPage: false, fast: car.fast, pages, &effects)
    let names = found.controllers.map { $0.text }.joined(separator: ", ")
    publish(.vehicle, .string("standard OBD-II (\(names))"), &effects)
    publishBus(&effects)
    return true
  }

  /// What is polled is wanted no more often than this; nil: at the device's rate.
  mutating func follow(_ wanted: Nanoseconds?) {
    if pace.follow(wanted) { timing = Timing(period: pace.period) }
  }

  private mutating func publishBus(_ effects: inout Effects) {
    if let name = bus.name { publish(.protocol, .string(name), &effects) }
  }
}

/// What a device has found its vehicle to be.
enum Vehicle: Equatable, Sendable {
  case unknown
  case electric(VehicleFamily?)
  case standard(Discovery)
}

extension VehicleBus {
  /// Whom an owner's signal is asked of: where no header was given, or one that is the same on every bus, whoever that is here.
  func target(of signal: CustomSignal) -> Target {
    if signal.header == .functional { return everybody }
    if signal.header == .engine, isLong { return Target(.engineLong) }
    return Target(signal.header, reply: signal.reply)
  }
}
