// Reads which PIDs the ECUs support, from all at once, 32 at a time. Each response counts for its own ECU; ambiguous responses are
// rejected. Facts: SAE J1979, service 01 with PIDs 00, 20, 40 …

/// The supported PIDs reported so far.
struct Discovery: Sendable, Equatable {
  /// One ECU, by its response identifier.
  struct Controller: Sendable, Equatable {
    let identifier: UInt32
    var parameters: [UInt8] = []

    /// The usual notation: `7E8`, `18DAF110`, on a K-line `10`.
    var text: String { CANReader.name(of: identifier) }
  }

  /// ISO 15765-4 defines eight addresses on 11-bit CAN.
  static let maxControllers = 8

  var bus: VehicleBus
  private(set) var controllers: [Controller] = []

  /// The maximum number of PIDs that an ECU answers in one request.
  var most = 6
  /// A hash of the VIN, if it is known.
  var mark: UInt32?

  init(on bus: VehicleBus) { self.bus = bus }

  /// Takes the response of an ECU to the request at `base`.
  mutating func add(_ bitmap: some Sequence<UInt8>, base: UInt8, from identifier: UInt32) {
    let found = StandardParameter.supported(bitmap, base: base)
    if let index = controllers.firstIndex(where: { $0.identifier == identifier }) {
      controllers[index].parameters += found.filter { !controllers[index].parameters.contains($0) }
    } else if controllers.count < Self.maxControllers {
      controllers.append(Controller(identifier: identifier, parameters: found))
      controllers.sort { $0.identifier < $1.identifier }
    }
  }

  /// Parses the stored form; nil if it is invalid.
  init?(kept bytes: [UInt8]) {
    bus = .search
    var kept: VehicleBus?
    for line in bytes.split(separator: lineFeed) {
      let fields = line.split(separator: space)
      guard fields.count == 2 else { return nil }
      if fields[0].elementsEqual("bus".utf8) {
        kept = VehicleBus(digits: fields[1])
        guard kept != nil else { return nil }
        continue
      }
      if fields[0].elementsEqual("mark".utf8) {
        mark = UInt32(String(decoding: fields[1], as: UTF8.self), radix: 16)
        continue
      }
      if fields[0].elementsEqual("most".utf8) {
        most = fields[1].elementsEqual("1".utf8) ? 1 : most
        continue
      }
      let digits = Array(fields[1])
      guard let identifier = UInt32(String(decoding: fields[0], as: UTF8.self), radix: 16), digits.count.isMultiple(of: 2),
        digits.allSatisfy(isHexDigit), controllers.count < Self.maxControllers, digits.count <= 512
      else { return nil }
      let parameters = stride(from: 0, to: digits.count, by: 2).map { hexValue(digits[$0]) << 4 | hexValue(digits[$0 + 1]) }
      var once: Set<UInt8> = []
      controllers.append(Controller(identifier: identifier, parameters: parameters.filter { once.insert($0).inserted }))
    }
    guard let first = controllers.first else { return nil }
    bus = kept ?? VehicleBus(answeringFrom: first.identifier)
  }

  /// The stored form: the protocol, the VIN hash, then one line per ECU with its identifier and its PIDs in hex digits.
  var bytes: [UInt8] {
    Array("bus \(bus.digit)\n\(most == 1 ? "most 1\n" : "")".utf8) + (mark.map { Array("mark \(String($0, radix: 16))\n".utf8) } ?? [])
      + controllers.flatMap { Array((String($0.identifier, radix: 16, uppercase: true) + " ").utf8) + hexText($0.parameters) + [lineFeed] }
  }

  /// The next base to request, or nil when complete.
  func next(after base: UInt8) -> UInt8? {
    guard base < 0xE0, controllers.contains(where: { $0.parameters.contains(base + 0x20) }) else { return nil }
    return base + 0x20
  }
}

extension CANReader {
  /// The supported PIDs that ECUs report from `base` on.
  func bitmaps(base: UInt8) -> [(source: UInt32?, bitmap: ArraySlice<UInt8>)] {
    messages.compactMap { message in
      let bytes = bytes(of: message)
      guard message.length >= 6, bytes.starts(with: [0x41, base]), Self.isController(message.source) else { return nil }
      return (message.source, bytes.dropFirst(2).prefix(4))
    }
  }
}

extension OBDMachine {
  /// Handles a reply to the request for supported PIDs.
  mutating func discovered(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    let base = request.bytes[1]
    let answers = reader.bitmaps(base: base)
    if answers.count > 1, answers.contains(where: { $0.source == nil }) {
      return failed(.unusable("several ECUs respond, and this adapter does not show which"), poll, at: now, &effects)
    }
    guard !answers.isEmpty else {
      // Every vehicle supports the first bitmap; if a later one is missing, the earlier ones remain valid.
      if base > 0 { return discoveryEnded(at: now, &effects) }
      return failed(.unusable("response to another request"), poll, at: now, &effects)
    }
    dialogue.isInStep()
    discoveryMisses = 0
    for answer in answers { discovery.add(answer.bitmap, base: base, from: answer.source ?? 0x7E8) }
    // An adapter that searches although a protocol was set is revealed by the response identifiers.
    let isOlder = answers.allSatisfy { $0.source.map { $0 <= 0xFF } ?? false }
    if bus == .search || bus.isCAN && isOlder {
      if traits.namesBus { return state = .namingBus }
      stand(on: nil)
    }
    askOn(at: now, &effects)
  }

  private mutating func askOn(at now: Instant, _ effects: inout Effects) {
    state = .polling
    guard let next = discovery.next(after: request.bytes[1]) else { return discoveryEnded(at: now, &effects) }
    request = RecordRequest(supportedFrom: next, on: bus)
    writePollBytes()
    pace.begin(at: now)
  }

  static let whichBus = Array("ATDPN\r".utf8)

  /// Handles the detected protocol. If the adapter does not report it, the ECU addresses are sufficient.
  mutating func busNamed(at now: Instant, _ effects: inout Effects) {
    stand(on: lines(of: dialogue.reply[dialogue.body...]).first.flatMap { VehicleBus(digits: $0) })
    askOn(at: now, &effects)
  }

  private mutating func stand(on named: VehicleBus?) {
    let answering = VehicleBus(answeringFrom: discovery.controllers.first?.identifier)
    bus = named.flatMap { $0.isCAN && !answering.isCAN ? nil : $0 } ?? answering
    discovery.bus = bus
    addressing = ECUAddressing(bus: bus, target: .unaddressed, timing: addressing?.timing ?? .initial)
  }

  /// Stores the ECUs for the next start.
  mutating func keepControllers(_ effects: inout Effects) {
    guard case .standard(let found) = vehicle, storedControllers != found else { return }
    storedControllers = found
    effects.append(.store(key: "controllers", found.bytes))
  }

  /// A later bitmap without a response is not supported by any ECU.
  mutating func endsDiscovery(_ failure: Failure) -> Bool {
    guard request.isDiscovery, request.bytes[1] > 0 else { return false }
    switch failure {
    case .status(.noData):
      discoveryMisses += 1
      return discoveryMisses >= 2
    case .negative: return true
    case .status, .unusable, .misfit: return false
    }
  }

  mutating func discoveryEnded(at now: Instant, _ effects: inout Effects) {
    state = .polling
    let found = discovery
    // The results so far may be of another vehicle: if detection fails, start over.
    begin(attempt)
    (errors.hasDiscovered, errors.madeWay) = (true, 0)
    guard recognise(found, &effects) else {
      return tryOther("the vehicle supports no known PID", isFinal: false, at: now, &effects)
    }
    pace.begin(at: now)
  }
}
