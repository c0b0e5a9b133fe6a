// Which parameters the vehicle's controllers support, asked of all at once, page by page of thirty-two. Each controller's answer counts
// for itself: a parameter is asked of one that has it. Answers that cannot be told apart are not guessed at.
// Facts: SAE J1979, services 01 with parameters 00, 20, 40 …

/// What the controllers have told so far.
struct Discovery: Sendable, Equatable {
  /// One controller, by the identifier that it answers from.
  struct Controller: Sendable, Equatable {
    let identifier: UInt32
    var parameters: [UInt8] = []

    /// As testers write it: `7E8`, `18DAF110`, on a K-line `10`.
    var text: String { CANReader.name(of: identifier) }
  }

  /// The standard has eight addresses on an 11-bit bus.
  static let maxControllers = 8

  var bus: VehicleBus
  private(set) var controllers: [Controller] = []

  /// Parameters that a controller answers in one request.
  var most = 6
  /// Tells this vehicle from another, where its number is known.
  var mark: UInt32?

  init(on bus: VehicleBus) { self.bus = bus }

  /// A controller's answer to the question from `base` on.
  mutating func add(_ bitmap: some Sequence<UInt8>, base: UInt8, from identifier: UInt32) {
    let found = StandardParameter.supported(bitmap, base: base)
    if let index = controllers.firstIndex(where: { $0.identifier == identifier }) {
      controllers[index].parameters += found.filter { !controllers[index].parameters.contains($0) }
    } else if controllers.count < Self.maxControllers {
      controllers.append(Controller(identifier: identifier, parameters: found))
      controllers.sort { $0.identifier < $1.identifier }
    }
  }

  /// What was kept; nil where it makes no sense.
  init?(kept bytes: [UInt8]) {
    bus = .search
    var kept: VehicleBus?
    for line in bytes.split(separator: lineFeed) {
      let words = line.split(separator: space)
      guard words.count == 2 else { return nil }
      if words[0].elementsEqual("bus".utf8) {
        kept = VehicleBus(digits: words[1])
        guard kept != nil else { return nil }
        continue
      }
      if words[0].elementsEqual("mark".utf8) {
        mark = UInt32(String(decoding: words[1], as: UTF8.self), radix: 16)
        continue
      }
      if words[0].elementsEqual("most".utf8) {
        most = words[1].elementsEqual("1".utf8) ? 1 : most
        continue
      }
      let digits = Array(words[1])
      guard let identifier = UInt32(String(decoding: words[0], as: UTF8.self), radix: 16), digits.count.isMultiple(of: 2),
        digits.allSatisfy(isHexDigit), controllers.count < Self.maxControllers, digits.count <= 512
      else { return nil }
      let parameters = stride(from: 0, to: digits.count, by: 2).map { hexValue(digits[$0]) << 4 | hexValue(digits[$0 + 1]) }
      var once: Set<UInt8> = []
      controllers.append(Controller(identifier: identifier, parameters: parameters.filter { once.insert($0).inserted }))
    }
    guard let first = controllers.first else { return nil }
    bus = kept ?? VehicleBus(answeringFrom: first.identifier)
  }

  /// To be kept: the bus, what tells the vehicle from others, then a line for each controller: its identifier and its parameters in hex
  /// digits.
  var bytes: [UInt8] {
    Array("bus \(bus.digit)\n\(most == 1 ? "most 1\n" : "")".utf8) + (mark.map { Array("mark \(String($0, radix: 16))\n".utf8) } ?? [])
      + controllers.flatMap { Array((String($0.identifier, radix: 16, uppercase: true) + " ").utf8) + hexText($0.parameters) + [lineFeed] }
  }

  /// Where to ask on, or nil when all is told.
  func next(after base: UInt8) -> UInt8? {
    guard base < 0xE0, controllers.contains(where: { $0.parameters.contains(base + 0x20) }) else { return nil }
    return base + 0x20
  }
}

extension CANReader {
  /// What controllers say that they support from `base` on.
  func bitmaps(base: UInt8) -> [(source: UInt32?, bitmap: ArraySlice<UInt8>)] {
    messages.compactMap { message in
      let bytes = bytes(of: message)
      guard message.length >= 6, bytes.starts(with: [0x41, base]), Self.isController(message.source) else { return nil }
      return (message.source, bytes.dropFirst(2).prefix(4))
    }
  }
}

extension OBDMachine {
  /// A reply to the question what there is.
  mutating func discovered(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    let base = request.bytes[1]
    let answers = reader.bitmaps(base: base)
    if answers.count > 1, answers.contains(where: { $0.source == nil }) {
      return failed(.unusable("several ECUs respond, and this adapter does not show which"), poll, at: now, &effects)
    }
    guard !answers.isEmpty else {
      // The first page is there in every car; where a later one is not, what came before stands.
      if base > 0 { return discoveryEnded(at: now, &effects) }
      return failed(.unusable("response to another request"), poll, at: now, &effects)
    }
    dialogue.isInStep()
    discoveryMisses = 0
    for answer in answers { discovery.add(answer.bitmap, base: base, from: answer.source ?? 0x7E8) }
    // An adapter that searches although it was told a bus shows it by who answers.
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
    request = PageRequest(supportedFrom: next, on: bus)
    writePollBytes()
    pace.begin(at: now)
  }

  static let whichBus = Array("ATDPN\r".utf8)

  /// The adapter has told which bus it found. Where it does not know the question, the controllers' addresses tell as much as we need.
  mutating func busNamed(at now: Instant, _ effects: inout Effects) {
    stand(on: lines(of: dialogue.reply[dialogue.body...]).first.flatMap { VehicleBus(digits: $0) })
    askOn(at: now, &effects)
  }

  private mutating func stand(on named: VehicleBus?) {
    let answering = VehicleBus(answeringFrom: discovery.controllers.first?.identifier)
    bus = named.flatMap { $0.isCAN && !answering.isCAN ? nil : $0 } ?? answering
    discovery.bus = bus
    aim = Aim(bus: bus, target: .unaddressed, timing: aim?.timing ?? .initial)
  }

  /// The next start knows them.
  mutating func keepControllers(_ effects: inout Effects) {
    guard case .standard(let found) = vehicle, storedControllers != found else { return }
    storedControllers = found
    effects.append(.store(key: "controllers", found.bytes))
  }

  /// A later page that nobody answers is one that nobody has.
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
    // What was told so far may have been another vehicle's: should this come to nothing, it is asked anew.
    begin(attempt)
    (streaks.hasDiscovered, streaks.madeWay) = (true, 0)
    guard recognise(found, &effects) else {
      return tryOther("the vehicle supports no known PID", isFinal: false, at: now, &effects)
    }
    pace.begin(at: now)
  }
}
