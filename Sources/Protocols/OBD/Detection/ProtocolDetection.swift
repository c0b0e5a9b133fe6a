// Protocol and vehicle detection: which request is polled, on which protocol. The configuration may set the vehicle; otherwise candidates
// are tried in turn and the result is stored. A candidate that requests the supported PIDs continues with the PIDs that follow.
//
//   candidate ─ answered ─▶ vehicle (electric, or standard with its ECUs) ─ another VIN, or PIDs no longer answered ─▶ unknown
//    ▲      │
//    └──────┘ not answered: the next candidate; after the last one a pause

/// The vehicle type of the configuration.
enum VehicleChoice: String, CaseIterable, Sendable {
  case auto
  case eGMP = "e-gmp"
  case hkmcEV = "hkmc-ev"
  case ice

  /// The protocol candidates, in this order.
  var candidates: [ProtocolCandidate] {
    switch self {
    case .auto:
      [
        ProtocolCandidate(.can, .uds), ProtocolCandidate(.can, .kwp), ProtocolCandidate(discoveryOn: .can),
        ProtocolCandidate(discoveryOn: .automatic),
      ]
    case .eGMP: [ProtocolCandidate(.can, .uds)]
    case .hkmcEV: [ProtocolCandidate(.can, .uds), ProtocolCandidate(.can, .kwp)]
    case .ice: [ProtocolCandidate(discoveryOn: .can), ProtocolCandidate(discoveryOn: .automatic)]
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

/// The detected vehicle.
enum Vehicle: Equatable, Sendable {
  case unknown
  case electric(VehicleFamily?)
  case standard(Discovery)
}

struct ProtocolDetection: Sendable {
  /// A known vehicle is searched on other protocols every so many pauses.
  private static let searchEvery = 10
  private static let maxForeign = 3

  private let choice: VehicleChoice
  private let candidates: [ProtocolCandidate]
  private var candidate = 0
  /// The vehicle's protocol, as far as it is known.
  private(set) var bus: VehicleBus
  private(set) var vehicle = Vehicle.unknown
  private var discovery = Discovery(on: .can)
  /// Consecutive missing responses to the next request for supported PIDs.
  private var discoveryMisses = 0
  /// The ECUs have just reported their supported PIDs.
  private(set) var hasDiscovered = false
  /// Candidates without an answer.
  private var failures = 0
  /// Consecutive pauses without a response.
  private var pauses = 0
  /// Consecutive responses that are not BMS data.
  private var foreignRecords = 0
  /// The hash of the VIN on this connection.
  private var mark: UInt32?
  /// The vehicle has been silent since it reported its VIN.
  private(set) var isMissed = false
  /// Detection was repeated on this connection because ECUs or PIDs were new.
  private var hasChecked = false
  /// The stored request and ECUs.
  private var storedRequest: RecordRequest?
  private var storedECUs: Discovery?

  init(_ choice: VehicleChoice) {
    self.choice = choice
    candidates = choice.candidates
    bus = candidates[0].bus
  }

  /// The known ECUs of a standard vehicle.
  var ecus: [Discovery.Controller] { if case .standard(let found) = vehicle { found.controllers } else { [] } }
  /// The maximum number of PIDs in one request.
  var maxPIDs: Int { if case .standard(let found) = vehicle, bus.isCAN { found.most } else { 1 } }

  // MARK: Candidates

  mutating func restore(request bytes: [UInt8]?) -> Int? {
    guard let bytes, let known = RecordRequest(rawValue: String(decoding: bytes, as: UTF8.self)),
      let place = candidates.firstIndex(where: { $0.request == known })
    else { return nil }
    storedRequest = known
    return place
  }

  /// The stored ECUs, if this vehicle may have them.
  func ecus(in bytes: [UInt8]?) -> Discovery? {
    guard choice == .auto || choice == .ice else { return nil }
    return bytes.flatMap { Discovery(stored: $0) }
  }

  /// These stored ECUs are the vehicle. Returns the candidate to begin with.
  mutating func restored(_ found: Discovery) -> Int {
    storedECUs = found
    // An electric car whose battery slept before may respond now: its request is tried first. Known ones use this protocol.
    return choice == .auto && found.bus == .can ? candidates.firstIndex { $0.request == storedRequest } ?? 0 : place(of: found) ?? 0
  }

  mutating func linkCameUp() {
    (mark, hasChecked, pauses) = (nil, false, 0)
    answered()
  }

  /// The number of consecutive pauses without a response. Every few of them another vehicle is considered.
  mutating func pausesChanged(to count: Int) { pauses = count }

  /// The lost settings may be due to a loose connector: the VIN is compared again.
  mutating func adapterWasSetUp() { mark = nil }

  /// The request of a candidate (nil: the present one): the PIDs of known ECUs, or the request for supported PIDs on their protocol.
  /// `vehicleRequest` is the fast request of the vehicle.
  mutating func begin(_ place: Int? = nil, vehicleRequest: RecordRequest?) -> RecordRequest {
    let place = place ?? candidate
    candidate = place
    var next = candidates[place]
    if case .standard(let found) = vehicle, self.place(of: found) == place, let vehicleRequest {
      next = ProtocolCandidate(found.bus, vehicleRequest)
    } else if let storedECUs, self.place(of: storedECUs) == place, pauses % Self.searchEvery != 0 {
      next = ProtocolCandidate(discoveryOn: storedECUs.bus)
    }
    bus = next.bus
    (discovery, discoveryMisses) = (Discovery(on: bus), 0)
    return next.request
  }

  /// The next candidate, and whether all were tried, for a pause. `request` was not answered.
  mutating func next(after request: RecordRequest, vehicleRequest: RecordRequest?) -> (request: RecordRequest, isLast: Bool) {
    hasDiscovered = false
    failures += 1
    // PIDs that are no longer answered: the ECUs are queried again in turn.
    if !request.parameters.isEmpty { vehicle = .unknown }
    let places = places()
    let next = begin(places.first { $0 > candidate } ?? places[0], vehicleRequest: vehicleRequest)
    guard failures >= places.count else { return (next, false) }
    failures = 0
    return (next, true)
  }

  /// The useful candidates: a known vehicle that sleeps has no other protocol, but every few pauses another vehicle is considered.
  private func places() -> [Int] {
    let isKnown = storedRequest != nil || storedECUs != nil
    let searches = !isKnown || pauses % Self.searchEvery == 0
    return candidates.indices.filter { searches || candidates[$0].bus != .automatic || $0 == storedECUs.flatMap(place) }
  }

  /// The candidate that detects this vehicle.
  private func place(of found: Discovery) -> Int? {
    candidates.firstIndex { $0.request.isDiscovery && $0.bus == found.bus } ?? candidates.firstIndex { $0.bus == .automatic }
  }

  /// The vehicle has answered the fast request.
  mutating func answered() { (failures, foreignRecords, hasDiscovered) = (0, 0, false) }

  /// Stores what the vehicle answered first on this connection.
  mutating func store(_ request: RecordRequest, _ effects: inout Effects) {
    if !request.parameters.isEmpty {
      storeECUs(&effects)
    } else if storedRequest != request {
      effects.append(.store(key: "request", Array(request.rawValue.utf8)))
    }
    storedRequest = request
  }

  /// Stores the ECUs for the next start.
  private mutating func storeECUs(_ effects: inout Effects) {
    guard case .standard(let found) = vehicle, storedECUs != found else { return }
    storedECUs = found
    effects.append(.store(key: "controllers", found.bytes))
  }

  // MARK: Supported PIDs

  /// What a reply to the request for supported PIDs means.
  enum DiscoveryResult {
    case failed(String)
    case next(RecordRequest)
    /// The adapter is asked for the protocol that it has found.
    case identifyProtocol
    case ended
  }

  /// Handles a reply to the request for supported PIDs from `base` on.
  mutating func discovered(_ reader: CANReader, base: UInt8, reportsProtocol: Bool) -> DiscoveryResult {
    let answers = reader.bitmaps(base: base)
    if answers.count > 1, answers.contains(where: { $0.source == nil }) {
      return .failed("several ECUs respond, and this adapter does not show which")
    }
    guard !answers.isEmpty else {
      // Every vehicle supports the first bitmap; if a later one is missing, the earlier ones remain valid.
      return base > 0 ? .ended : .failed("response to another request")
    }
    discoveryMisses = 0
    for answer in answers { discovery.add(answer.bitmap, base: base, from: answer.source ?? 0x7E8) }
    // An adapter that searches although a protocol was set is revealed by the response identifiers.
    let isOlder = answers.allSatisfy { $0.source.map { $0 <= 0xFF } ?? false }
    guard bus == .automatic || bus.isCAN && isOlder else { return next(after: base) }
    if reportsProtocol { return .identifyProtocol }
    return identified(nil, after: base)
  }

  private func next(after base: UInt8) -> DiscoveryResult {
    discovery.next(after: base).map { .next(RecordRequest(supportedFrom: $0, on: bus)) } ?? .ended
  }

  /// Handles the protocol that the adapter names. If it does not, the ECU addresses are sufficient.
  mutating func identified(_ named: VehicleBus?, after base: UInt8) -> DiscoveryResult {
    let answering = VehicleBus(impliedBy: discovery.controllers.first?.identifier)
    bus = named.flatMap { $0.isCAN && !answering.isCAN ? nil : $0 } ?? answering
    discovery.found(on: bus)
    return next(after: base)
  }

  /// What a failed request for supported PIDs means.
  enum DiscoveryMiss { case none, retry, ended }

  /// A later bitmap without a response is not supported by any ECU.
  mutating func missed(_ request: RecordRequest, _ failure: PollFailure) -> DiscoveryMiss {
    guard request.isDiscovery else { return .none }
    if request.bytes[1] > 0 {
      if case .negative = failure { return .ended }
      if case .status(.noData) = failure {
        discoveryMisses += 1
        if discoveryMisses >= 2 { return .ended }
      }
    }
    return discoveryMisses == 1 ? .retry : .none
  }

  /// All ECUs have reported. The results so far may be of another vehicle: if detection fails, start over.
  mutating func discoveryEnded(vehicleRequest: RecordRequest?) -> (found: Discovery, request: RecordRequest) {
    let found = discovery
    let request = begin(vehicleRequest: vehicleRequest)
    hasDiscovered = true
    return (found, request)
  }

  // MARK: Vehicle

  /// These ECUs are the vehicle.
  mutating func recognised(_ found: Discovery) {
    var found = found
    if let mark { found.identify(mark) }
    (bus, vehicle) = (found.bus, .standard(found))
  }

  /// A BMS data record identifies the family. Returns false if it is the one known before.
  mutating func recognised(_ family: VehicleFamily?, _ effects: inout Effects) -> Bool {
    guard vehicle != .electric(family) else { return false }
    vehicle = .electric(family)
    if storedECUs != nil { effects.append(.store(key: "controllers", [])) }
    storedECUs = nil
    return true
  }

  /// Whether a record must pass the plausibility check: unless the vehicle is configured, at the first response of a connection and after
  /// each silence.
  func requiresPlausibility(_ request: RecordRequest, isConfirmed: Bool) -> Bool { choice == .auto && !isConfirmed && request.isBMSRecord }

  /// What a response that is not BMS data means.
  enum ForeignRecord { case retry, pause, tryOther }

  /// The response is not BMS data. A vehicle known before may have just woken up; with any other the next candidate is tried.
  mutating func foreignRecord(_ request: RecordRequest, _ effects: inout Effects) -> ForeignRecord {
    foreignRecords += 1
    if foreignRecords < Self.maxForeign { return storedRequest == request ? .pause : .retry }
    foreignRecords = 0
    if storedRequest == request {
      storedRequest = nil
      effects.append(.store(key: "request", []))
    }
    return .tryOther
  }

  /// The ECUs answer one PID per request, which is stored.
  mutating func limitToOnePID(_ effects: inout Effects) {
    guard let found = limitedToOnePID() else { return }
    vehicle = .standard(found)
    storeECUs(&effects)
  }

  /// The ECUs with one PID per request; nil if that was known before.
  func limitedToOnePID() -> Discovery? {
    guard case .standard(var found) = vehicle, found.most > 1 else { return nil }
    found.limitToOne()
    return found
  }

  // MARK: Identity

  /// The vehicle was silent: another one may respond now.
  mutating func identifyAgain() { (isMissed, mark, hasChecked) = (false, nil, false) }
  mutating func vehicleSilent() { isMissed = true }

  /// The ECUs have reported their supported PIDs again. Returns whether there are more: once per connection.
  mutating func hasMore(_ reader: CANReader) -> Bool {
    guard case .standard(let found) = vehicle, !hasChecked else { return false }
    let isMore = reader.bitmaps(base: 0).contains { source, bitmap in
      guard let known = found.controllers.first(where: { $0.identifier == source ?? 0x7E8 }) else { return true }
      return StandardParameter.supported(bitmap, base: 0).contains { !known.parameters.contains($0) }
    }
    hasChecked = hasChecked || isMore
    return isMore
  }

  /// Compares the reported VIN with the stored one. Returns true if it is another vehicle.
  mutating func isOther(vin: String, _ effects: inout Effects) -> Bool {
    guard case .standard(var found) = vehicle, self.mark == nil else { return false }
    // Once after each silence: vehicles do not change while polling, and ECUs that report changing VINs must not cause a loop.
    let mark = Discovery.mark(of: vin)
    self.mark = mark
    if found.mark == mark { return false }
    if found.mark != nil { return true }
    found.identify(mark)
    vehicle = .standard(found)
    storeECUs(&effects)
    return false
  }

  /// Detection begins again. Returns the first request.
  mutating func startOver(vehicleRequest: RecordRequest?) -> RecordRequest {
    let place = if case .standard(let found) = vehicle { self.place(of: found) } else { Int?.none }
    vehicle = .unknown
    defer { answered() }
    return begin(place, vehicleRequest: vehicleRequest)
  }
}
