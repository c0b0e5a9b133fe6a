// Vehicle detection: which request is polled, and which data records beside it. The configuration may set the vehicle; otherwise requests
// are tried in turn and the result is stored.

/// The vehicle type of the configuration.
enum VehicleChoice: String, CaseIterable, Sendable {
  case auto
  case eGMP = "e-gmp"
  case hkmcEV = "hkmc-ev"
  case ice

  /// The protocol candidates, in this order.
  var attempts: [ProtocolCandidate] {
    switch self {
    case .auto:
      [
        ProtocolCandidate(.can, .uds), ProtocolCandidate(.can, .kwp), ProtocolCandidate(discoveryOn: .can),
        ProtocolCandidate(discoveryOn: .search),
      ]
    case .eGMP: [ProtocolCandidate(.can, .uds)]
    case .hkmcEV: [ProtocolCandidate(.can, .uds), ProtocolCandidate(.can, .kwp)]
    case .ice: [ProtocolCandidate(discoveryOn: .can), ProtocolCandidate(discoveryOn: .search)]
    }
  }
}

/// A first request and the protocol on which it may be answered.
struct ProtocolCandidate: Equatable, Sendable {
  let bus: VehicleBus
  let request: RecordRequest

  init(_ bus: VehicleBus, _ request: RecordRequest) { (self.bus, self.request) = (bus, request) }

  init(discoveryOn bus: VehicleBus) { self.init(bus, RecordRequest(supportedFrom: 0, on: bus)) }
}

extension OBDMachine {
  private static let searchEvery = 10

  /// For the vehicle as far as it is known.
  mutating func layOutFirst() {
    lay(
      values.layOut(
        hasBatteryRecord: choice != .ice, fast: nil, pages(of: choice == .eGMP ? .eGMP : nil), period: pace.period))
  }

  private mutating func lay(_ layout: ValueTable.Layout) {
    primary = layout.fast
    requestQueue.replace(with: layout.requests)
  }

  private func pages(of family: VehicleFamily?) -> [RequestLayout] {
    let known = family.map(RequestLayout.records)
    let identity = known == nil ? [] : Self.identityPages(of: [], on: .can)
    return (isFastOnly ? [] : (known ?? []) + identity) + RequestLayout.own(signals, on: bus)
  }

  /// Tries the next request. Returns false once all were tried, for a pause.
  mutating func tryNext() -> Bool {
    errors.isSettled = false
    errors.refusals += 1
    // PIDs that are no longer answered: the ECUs are queried again in turn.
    if !request.parameters.isEmpty { vehicle = .unknown }
    let places = places
    begin(places.first { $0 > attempt } ?? places[0])
    guard errors.refusals >= places.count else { return true }
    errors.refusals = 0
    // The tuned timeout may be too short for the next ECU.
    if timings.usual == .initial { recallTiming() } else { timings.usual = .initial }
    return false
  }

  /// The useful candidates: a known vehicle that sleeps has no other protocol, but every few pauses another vehicle is considered.
  private var places: [Int] {
    let isKnown = storedRequest != nil || storedControllers != nil
    let searches = !isKnown || errors.backOffs % Self.searchEvery == 0
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
      next = ProtocolCandidate(found.bus, fastRequest)
    } else if let known = storedControllers, self.place(of: known) == place, errors.backOffs % Self.searchEvery != 0 {
      next = ProtocolCandidate(discoveryOn: known.bus)
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
      lay(values.declare(hasBatteryRecord: true, fast: nil, pages(of: family), period: pace.period, of: [], &effects))
      if storedControllers != nil { effects.append(.store(key: "controllers", [])) }
      storedControllers = nil
    }
    values.publish(.vehicle, .string("electric Hyundai or Kia" + (family.map { " (\($0.rawValue))" } ?? "")), &effects)
    publishBus(&effects)
  }

  /// Handles the supported PIDs of an SAE J1979 vehicle. Returns false if none of them is known.
  mutating func recognise(_ found: Discovery, _ effects: inout Effects) -> Bool {
    guard let car = StandardCar(found, overrides) else { return false }
    var found = found
    found.mark = mark ?? found.mark
    (bus, request, failsTogether) = (found.bus, car.request, .no)
    fastPeriod = car.fast.request.isFast ? nil : car.fast.request.period
    follow(fastPeriod)
    (count, answerer) = (FrameCount(), nil)
    writePollBytes()
    let pages =
      (isFastOnly ? [] : car.layouts + Self.identityPages(of: found.controllers, on: found.bus)) + RequestLayout.own(signals, on: bus)
    fastRequest = car.request
    vehicle = .standard(found)
    lay(values.declare(hasBatteryRecord: false, fast: car.fast, pages, period: pace.period, of: found.controllers, &effects))
    let names = found.controllers.map { $0.text }.joined(separator: ", ")
    values.publish(.vehicle, .string("standard OBD-II (\(names))"), &effects)
    publishBus(&effects)
    return true
  }

  /// The configured period of the fast request; nil: the device's rate.
  mutating func follow(_ wanted: Nanoseconds?) {
    if pace.follow(wanted) { timing = Timing(period: pace.period) }
  }

  private mutating func publishBus(_ effects: inout Effects) {
    if let name = bus.name { values.publish(.protocol, .string(name), &effects) }
  }
}

/// The detected vehicle.
enum Vehicle: Equatable, Sendable {
  case unknown
  case electric(VehicleFamily?)
  case standard(Discovery)
}
