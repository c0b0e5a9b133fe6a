// Protocol and vehicle detection. Protocol candidates are tried in turn, and the result is stored. The configured vehicle type limits the
// candidates. A candidate that requests the supported PIDs continues with the next 32 PIDs until all are known.
//
//   candidate ─ answered ─▶ vehicle (electric, or standard with its ECUs) ─ another VIN, PIDs no longer answered, or BMS data ─▶ unknown
//    ▲      │
//    └──────┘ not answered: the next candidate; after the last one a pause

/// The configured vehicle type.
enum VehicleChoice: Sendable, Equatable {
  case auto, eGMP, hkmcEV, generic
  case profile(VehicleProfile)

  static let all: [VehicleChoice] = [.auto, .eGMP, .hkmcEV, .generic] + VehicleProfile.all.map { .profile($0) }

  /// The name in the configuration.
  var name: String {
    switch self {
    case .auto: "auto"
    case .eGMP: "e-gmp"
    case .hkmcEV: "hkmc-ev"
    case .generic: "generic"
    case .profile(let profile): profile.name
    }
  }

  /// Whether the vehicle may be an electric Hyundai or Kia.
  var mayHaveBMSRecord: Bool { self == .auto || self == .eGMP || self == .hkmcEV }

  /// The protocol candidates, in the order in which they are tried.
  var candidates: [ProtocolCandidate] {
    switch self {
    case .auto:
      [
        ProtocolCandidate(.can, .bmsUDS), ProtocolCandidate(.can, .bmsKWP), ProtocolCandidate(discoveryOn: .can),
        ProtocolCandidate(discoveryOn: .automatic),
      ]
    case .eGMP: [ProtocolCandidate(.can, .bmsUDS)]
    case .hkmcEV: [ProtocolCandidate(.can, .bmsUDS), ProtocolCandidate(.can, .bmsKWP)]
    case .profile(let profile) where !profile.hasStandardPIDs:
      [ProtocolCandidate(profile.bus, FastRequest(profile.split(on: profile.bus).fast.request))]
    case .generic, .profile: [ProtocolCandidate(discoveryOn: .can), ProtocolCandidate(discoveryOn: .automatic)]
    }
  }
}

/// A request to try during detection, and the protocol on which it is sent.
struct ProtocolCandidate: Equatable, Sendable {
  let bus: OBDProtocol
  let request: FastRequest

  init(_ bus: OBDProtocol, _ request: FastRequest) { (self.bus, self.request) = (bus, request) }

  init(discoveryOn bus: OBDProtocol) { self.init(bus, FastRequest(supportedFrom: 0, on: bus)) }
}

/// The detected vehicle.
enum Vehicle: Equatable, Sendable {
  case unknown
  case electric(VehicleFamily?)
  case standard(ECUDiscovery)
}

struct ProtocolDetection: Sendable {
  /// The number of pauses between searches over all protocols: if a known vehicle does not respond, the adapter may be in another vehicle.
  private static let pausesPerSearch = 10
  private static let maxForeignRecords = 3
  private static let ecusKey = "ecus"
  /// The key of the ECUs in earlier versions.
  private static let oldECUsKey = "controllers"

  private let choice: VehicleChoice
  private let candidates: [ProtocolCandidate]
  /// The index of the current candidate.
  private var candidateIndex = 0
  /// The protocol of the current candidate or of the detected vehicle.
  private(set) var bus: OBDProtocol
  private(set) var vehicle = Vehicle.unknown
  private var discovery = ECUDiscovery(on: .can)
  /// Consecutive missing responses to the current request for supported PIDs.
  private var discoveryMisses = 0
  /// Whether the ECUs have just reported their supported PIDs and no request for values has been answered since.
  private(set) var hasJustDiscovered = false
  /// The number of candidates that failed since the last response.
  private var failures = 0
  /// Consecutive pauses without a response.
  private var pauses = 0
  /// Consecutive responses that are not BMS data.
  private var foreignRecords = 0
  /// The hash of the VIN on this connection.
  private var vinHash: UInt32?
  /// Whether the vehicle has stopped responding, so that its identification is requested again once it responds.
  private(set) var mustIdentifyAgain = false
  /// Whether detection was repeated on this connection because new ECUs or PIDs were found.
  private var hasRepeatedDetection = false
  /// The stored request, or the request that the vehicle has answered since.
  private var storedRequest: FastRequest?
  /// The request for BMS data that the vehicle has answered, on this connection or an earlier one; nil if it is not known to be electric.
  private(set) var bmsRequest: FastRequest?
  /// The stored ECUs of a standard vehicle.
  private var storedECUs: ECUDiscovery?

  init(_ choice: VehicleChoice) {
    self.choice = choice
    candidates = choice.candidates
    bus = candidates[0].bus
  }

  /// The known ECUs of a standard vehicle.
  var ecus: [ECUDiscovery.ECU] { if case .standard(let found) = vehicle { found.ecus } else { [] } }
  /// The maximum number of PIDs in one request.
  var maxPIDs: Int { if case .standard(let found) = vehicle, bus.isCAN { found.maxPIDsPerRequest } else { 1 } }

  // MARK: Candidates

  /// Restores the stored request. Returns the index of its candidate, or nil if there is none.
  mutating func restore(request bytes: [UInt8]?) -> Int? {
    guard let bytes, let known = FastRequest(rawValue: String(decoding: bytes, as: UTF8.self)),
      let index = candidates.firstIndex(where: { $0.request == known })
    else { return nil }
    (storedRequest, bmsRequest) = (known, known)
    return index
  }

  /// Parses the stored ECUs; nil if they are invalid, or do not fit the configured vehicle type. ECUs under the old key are moved.
  func ecus(in stored: [String: [UInt8]], _ effects: inout Effects) -> ECUDiscovery? {
    let old = stored[Self.oldECUsKey]
    if let old {
      if stored[Self.ecusKey] == nil { effects.append(.store(key: Self.ecusKey, old)) }
      effects.append(.store(key: Self.oldECUsKey, []))
    }
    guard candidates.contains(where: \.request.isDiscovery) else { return nil }
    return (stored[Self.ecusKey] ?? old).flatMap { ECUDiscovery(stored: $0) }
  }

  /// Assumes that the vehicle has the stored ECUs. Returns the index of the candidate to begin with.
  mutating func useStored(_ found: ECUDiscovery) -> Int {
    storedECUs = found
    // The vehicle may be an electric car whose BMS was asleep during detection: the request for its BMS data is tried first.
    return choice == .auto && found.bus == .can ? candidates.firstIndex { $0.request == storedRequest } ?? 0 : index(for: found) ?? 0
  }

  mutating func linkCameUp() {
    (vinHash, hasRepeatedDetection, pauses) = (nil, false, 0)
    answered()
  }

  /// Sets the number of consecutive pauses without a response.
  mutating func pausesChanged(to count: Int) { pauses = count }

  /// Handles the end of a setup of the adapter, which may have been moved to another vehicle: the VIN is compared again.
  mutating func adapterWasSetUp() { vinHash = nil }

  /// Begins the candidate at `index`, or the current one if nil, and returns the request to send. If the candidate detects the known
  /// vehicle, this is `vehicleRequest`, the vehicle's fast request (the request that is polled at the device's rate).
  mutating func begin(_ index: Int? = nil, vehicleRequest: FastRequest?) -> FastRequest {
    let index = index ?? candidateIndex
    candidateIndex = index
    var next = candidates[index]
    if case .standard(let found) = vehicle, self.index(for: found) == index, let vehicleRequest {
      next = ProtocolCandidate(found.bus, vehicleRequest)
    } else if let storedECUs, self.index(for: storedECUs) == index, pauses % Self.pausesPerSearch != 0 {
      next = ProtocolCandidate(discoveryOn: storedECUs.bus)
    }
    bus = next.bus
    (discovery, discoveryMisses) = (ECUDiscovery(on: bus), 0)
    return next.request
  }

  /// Begins the next candidate after `request` was not answered, and returns the new request. `isLast`: all candidates were tried, so a
  /// pause follows.
  mutating func beginNext(after request: FastRequest, vehicleRequest: FastRequest?) -> (request: FastRequest, isLast: Bool) {
    hasJustDiscovered = false
    failures += 1
    // If PIDs are no longer answered, the supported PIDs are requested again.
    if !request.parameters.isEmpty { vehicle = .unknown }
    let eligible = eligibleCandidates()
    let next = begin(eligible.first { $0 > candidateIndex } ?? eligible[0], vehicleRequest: vehicleRequest)
    guard failures >= eligible.count else { return (next, false) }
    failures = 0
    return (next, true)
  }

  /// The indices of the candidates to try. For a known vehicle, a candidate with automatic protocol detection is tried only before the
  /// first pause and after every `pausesPerSearch` pauses, unless it is the candidate that detects this vehicle.
  private func eligibleCandidates() -> [Int] {
    let isKnown = storedRequest != nil || storedECUs != nil
    let triesAll = !isKnown || pauses % Self.pausesPerSearch == 0
    return candidates.indices.filter { triesAll || candidates[$0].bus != .automatic || $0 == storedECUs.flatMap(index(for:)) }
  }

  /// The index of the candidate that detects this vehicle.
  private func index(for found: ECUDiscovery) -> Int? {
    candidates.firstIndex { $0.request.isDiscovery && $0.bus == found.bus } ?? candidates.firstIndex { $0.bus == .automatic }
  }

  /// Handles a response to the fast request.
  mutating func answered() { (failures, foreignRecords, hasJustDiscovered) = (0, 0, false) }

  /// Stores the first request that the vehicle has answered on this connection.
  mutating func store(_ request: FastRequest, _ effects: inout Effects) {
    if !request.parameters.isEmpty {
      storeECUs(&effects)
    } else if request.isBMSRecord, bmsRequest != request {
      bmsRequest = request
      effects.append(.store(key: "request", Array(request.rawValue.utf8)))
    }
    storedRequest = request
  }

  /// Stores the ECUs for the next start.
  private mutating func storeECUs(_ effects: inout Effects) {
    guard case .standard(let found) = vehicle, storedECUs != found else { return }
    storedECUs = found
    effects.append(.store(key: Self.ecusKey, found.storedForm))
  }

  // MARK: Supported PIDs

  /// The next step after a reply to the request for supported PIDs.
  enum DiscoveryStep {
    case failed(String)
    case next(FastRequest)
    /// Query the protocol that the adapter has detected.
    case identifyProtocol
    case ended
  }

  /// Handles a reply to the request for the 32 supported PIDs after `base`. `reportsProtocol`: the adapter can report the detected
  /// protocol.
  mutating func supportedPIDsReceived(_ reader: ReplyReader, base: UInt8, reportsProtocol: Bool) -> DiscoveryStep {
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
    // Some adapters detect the protocol although one was set. The response addresses reveal this.
    let isPreCAN = answers.allSatisfy { $0.source.map { $0 <= 0xFF } ?? false }
    guard bus == .automatic || bus.isCAN && isPreCAN else { return next(after: base) }
    if reportsProtocol { return .identifyProtocol }
    return identified(nil, after: base)
  }

  private func next(after base: UInt8) -> DiscoveryStep {
    discovery.next(after: base).map { .next(FastRequest(supportedFrom: $0, on: bus)) } ?? .ended
  }

  /// Handles the protocol that the adapter reports. If it reports none (nil), or if the ECU addresses contradict the report, the addresses
  /// determine the protocol.
  mutating func identified(_ reported: OBDProtocol?, after base: UInt8) -> DiscoveryStep {
    let implied = OBDProtocol(impliedBy: discovery.ecus.first?.identifier)
    bus = reported.flatMap { $0.isCAN && !implied.isCAN ? nil : $0 } ?? implied
    discovery.setBus(bus)
    return next(after: base)
  }

  /// The next step after a failed request for supported PIDs; `none`: the failure is handled like that of any other request.
  enum FailureStep { case none, retry, ended }

  /// Counts a failed request. Supported PIDs after the first 32 are optional: two missing responses end the discovery.
  mutating func recordFailure(of request: FastRequest, _ failure: PollFailure) -> FailureStep {
    guard request.isDiscovery else { return .none }
    if request.bytes[1] > 0 {
      if case .negative = failure { return .ended }
      if case .status(.noData) = failure {
        discoveryMisses += 1
        return discoveryMisses >= 2 ? .ended : .retry
      }
    }
    return .none
  }

  /// Ends the discovery. Returns the ECUs, and the request to poll if they turn out to be unusable.
  mutating func endDiscovery(vehicleRequest: FastRequest?) -> (found: ECUDiscovery, request: FastRequest) {
    let found = discovery
    let request = begin(vehicleRequest: vehicleRequest)
    hasJustDiscovered = true
    return (found, request)
  }

  // MARK: Vehicle

  /// Sets the detected vehicle to an SAE J1979 vehicle with these ECUs.
  mutating func setVehicle(_ found: ECUDiscovery) {
    var found = found
    if let vinHash { found.setVINHash(vinHash) }
    (bus, vehicle) = (found.bus, .standard(found))
  }

  /// Sets the detected vehicle to an electric one of this family. Returns false if this was already known.
  mutating func setVehicle(_ family: VehicleFamily?, _ effects: inout Effects) -> Bool {
    guard vehicle != .electric(family) else { return false }
    vehicle = .electric(family)
    if storedECUs != nil { effects.append(.store(key: Self.ecusKey, [])) }
    storedECUs = nil
    return true
  }

  /// Whether the response to a request must pass the plausibility check. Unless the vehicle type is configured, this applies to BMS data
  /// records until the first one is accepted.
  func requiresPlausibility(_ request: FastRequest, isConfirmed: Bool) -> Bool { choice == .auto && !isConfirmed && request.isBMSRecord }

  /// The next step after a response that is not BMS data.
  enum ForeignRecordStep { case retry, pause, tryOther }

  /// Counts a response that is not BMS data. The request is repeated, because the BMS may have just woken up; for a known vehicle, a pause
  /// comes first. After `maxForeignRecords` such responses, the next candidate is tried.
  mutating func countForeignRecord(_ request: FastRequest, _ effects: inout Effects) -> ForeignRecordStep {
    foreignRecords += 1
    if foreignRecords < Self.maxForeignRecords { return storedRequest == request ? .pause : .retry }
    foreignRecords = 0
    if storedRequest == request {
      (storedRequest, bmsRequest) = (nil, nil)
      effects.append(.store(key: "request", []))
    }
    return .tryOther
  }

  /// Stores that the ECUs answer only one PID per request.
  mutating func limitToOnePID(_ effects: inout Effects) {
    guard let found = limitedToOnePID() else { return }
    vehicle = .standard(found)
    storeECUs(&effects)
  }

  /// The ECUs, limited to one PID per request; nil if this limit was already known.
  func limitedToOnePID() -> ECUDiscovery? {
    guard case .standard(var found) = vehicle, found.maxPIDsPerRequest > 1 else { return nil }
    found.limitToOnePID()
    return found
  }

  // MARK: Identity

  /// Resets the VIN of this connection after a period without responses: the adapter may be in another vehicle.
  mutating func resetIdentity() { (mustIdentifyAgain, vinHash, hasRepeatedDetection) = (false, nil, false) }
  /// Handles a vehicle that does not respond.
  mutating func vehicleSilent() { mustIdentifyAgain = true }

  /// Compares newly reported supported PIDs with the known ones. Returns true, at most once per connection, if there are new ECUs or PIDs.
  mutating func checkForNewPIDs(_ reader: ReplyReader) -> Bool {
    guard case .standard(let found) = vehicle, !hasRepeatedDetection else { return false }
    let hasNew = reader.bitmaps(base: 0).contains { source, bitmap in
      guard let known = found.ecus.first(where: { $0.identifier == source ?? 0x7E8 }) else { return true }
      return StandardParameter.supported(bitmap, base: 0).contains { !known.parameters.contains($0) }
    }
    hasRepeatedDetection = hasRepeatedDetection || hasNew
    return hasNew
  }

  /// Compares the reported VIN with the stored one, or stores it if there is none. Returns true if it is another vehicle.
  mutating func recordVIN(_ vin: String, _ effects: inout Effects) -> Bool {
    // The VIN is compared once after each period without responses: the vehicle cannot change while it responds, and an ECU that reports
    // changing VINs must not cause a loop.
    guard case .standard(var found) = vehicle, self.vinHash == nil else { return false }
    let vinHash = ECUDiscovery.vinHash(of: vin)
    self.vinHash = vinHash
    if found.vinHash == vinHash { return false }
    if found.vinHash != nil { return true }
    found.setVINHash(vinHash)
    vehicle = .standard(found)
    storeECUs(&effects)
    return false
  }

  /// Begins detection again, with this request or else with the candidate that has detected the vehicle. Returns its first request.
  mutating func restart(with request: FastRequest? = nil, vehicleRequest: FastRequest?) -> FastRequest {
    let detecting = if case .standard(let found) = vehicle { self.index(for: found) } else { Int?.none }
    let index = request.flatMap { request in candidates.firstIndex { $0.request == request } } ?? detecting
    vehicle = .unknown
    defer { answered() }
    return begin(index, vehicleRequest: vehicleRequest)
  }
}
