// Vehicle detection: which request is polled, and which data records beside it. The configuration may set the vehicle; otherwise requests
// are tried in turn and the result is stored.

/// The vehicle type of the configuration.
enum VehicleChoice: String, CaseIterable, Sendable {
  case auto
  case eGMP = "e-gmp"
  case hkmcEV = "hkmc-ev"
  case ice

  /// The protocol candidates, in this order.
  var attempts: [Attempt] {
    switch self {
    case .auto: [Attempt(.can, .uds), Attempt(.can, .kwp), Attempt(discoveryOn: .can), Attempt(discoveryOn: .search)]
    case .eGMP: [Attempt(.can, .uds)]
    case .hkmcEV: [Attempt(.can, .uds), Attempt(.can, .kwp)]
    case .ice: [Attempt(discoveryOn: .can), Attempt(discoveryOn: .search)]
    }
  }
}

/// A first request and the protocol on which it may be answered.
struct Attempt: Equatable, Sendable {
  let bus: VehicleBus
  let request: PageRequest

  init(_ bus: VehicleBus, _ request: PageRequest) { (self.bus, self.request) = (bus, request) }

  init(discoveryOn bus: VehicleBus) { self.init(bus, PageRequest(supportedFrom: 0, on: bus)) }
}

extension OBDMachine {
  private static let searchEvery = 10

  /// The requests beside the fast one in every vehicle: custom signals.
  private var ownPages: [Page] {
    var pages: [Page] = []
    for signal in signals {
      let target = bus.target(of: signal)
      // Signals of one response share a request with the shortest period.
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

  /// For the vehicle as far as it is known.
  mutating func layOutFirst() {
    layOut(hasBatteryPage: choice != .ice, fast: nil, pages(of: choice == .eGMP ? .eGMP : nil))
  }

  private func pages(of family: VehicleFamily?) -> [Page] {
    let known = family.map { family in
      family.records.map { record in
        Page(
          Inquiry(Target(CANIdentifier(record.header), reply: CANIdentifier(record.reply)), record.request, period: record.period),
          record.rows)
      }
    }
    let identity = known == nil ? [] : Self.identityPages(of: [], on: .can)
    return (isFastOnly ? [] : (known ?? []) + identity) + ownPages
  }

  /// Tries the next request. Returns false once all were tried, for a pause.
  mutating func tryNext() -> Bool {
    streaks.isSettled = false
    streaks.refusals += 1
    // PIDs that are no longer answered: the ECUs are queried again in turn.
    if !request.parameters.isEmpty { vehicle = .unknown }
    let places = places
    begin(places.first { $0 > attempt } ?? places[0])
    guard streaks.refusals >= places.count else { return true }
    streaks.refusals = 0
    // The tuned timeout may be too short for the next ECU.
    if timings.usual == .initial { recallTiming() } else { timings.usual = .initial }
    return false
  }

  /// The useful candidates: a known vehicle that sleeps has no other protocol, but every few pauses another vehicle is considered.
  private var places: [Int] {
    let isKnown = storedRequest != nil || storedControllers != nil
    let searches = !isKnown || streaks.backOffs % Self.searchEvery == 0
    return attempts.indices.filter { searches || attempts[$0].bus != .search || $0 == storedControllers.flatMap(place) }
  }

  /// The candidate that detects this vehicle.
  func place(of found: Discovery) -> Int? {
    attempts.firstIndex { $0.request.isDiscovery && $0.bus == found.bus } ?? attempts.firstIndex { $0.bus == .search }
  }

  /// The request of a candidate: the PIDs of known ECUs, or the request for supported PIDs on their protocol.
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

  /// Handles a BMS data record, which identifies the family.
  mutating func recognise(_ data: Range<Int>, _ effects: inout Effects) {
    let family = reader.payload.withUnsafeBufferPointer { VehicleFamily(request, record: UnsafeBufferPointer(rebasing: $0[data])) }
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

  /// Handles the supported PIDs of an SAE J1979 vehicle. Returns false if none of them is known.
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

  /// The configured period of the fast request; nil: the device's rate.
  mutating func follow(_ wanted: Nanoseconds?) {
    if pace.follow(wanted) { timing = Timing(period: pace.period) }
  }

  private mutating func publishBus(_ effects: inout Effects) {
    if let name = bus.name { publish(.protocol, .string(name), &effects) }
  }
}

/// The detected vehicle.
enum Vehicle: Equatable, Sendable {
  case unknown
  case electric(VehicleFamily?)
  case standard(Discovery)
}

extension VehicleBus {
  /// The target of a custom signal without a header, or with a functional one: it depends on the protocol.
  func target(of signal: CustomSignal) -> Target {
    if signal.header == .functional { return everybody }
    if signal.header == .engine, isLong { return Target(.engineLong) }
    return Target(signal.header, reply: signal.reply)
  }
}
