// How a request to all ECUs reaches them over frames. The gateways of some cars block functional requests, but pass on those to the physical
// address of an ECU. Such a gateway is recognised when only physical requests for the first supported PIDs, which every ECU has, are
// answered; the ECUs found then receive all further functional requests at their own addresses. This request is always functional at first,
// so that the result is corrected when a functional request was only lost, or the adapter is in another vehicle. Until it is known, each
// request to read is repeated to the ECUs if no functional one was answered. Source: ISO 15765-4, SAE J2178-1 (addresses).

struct FunctionalAddressing: Sendable {
  private enum State: Sendable {
    case unknown
    /// Functional requests are answered.
    case functional
    /// Only requests to `ecus` are answered.
    case physical
  }

  private static let supportedPIDs: [UInt8] = [0x01, 0x00]
  /// The unanswered requests for the supported PIDs after which functional requests may be blocked. One can be lost.
  private static let maxMisses = 2
  private var state = State.unknown
  /// The physical addresses of the ECUs that have answered after a functional request was not answered.
  private var ecus: [CANIdentifier] = []
  /// The unanswered requests for the supported PIDs since functional requests were last answered.
  private var misses = 0

  /// The addresses to which a request to all ECUs at `identifiers` is sent, and whether it is repeated to the ECUs' own addresses if none
  /// responds. A request that is not read-only, such as clearing trouble codes, is sent only once.
  func route(_ request: [UInt8], to identifiers: [CANIdentifier]) -> (addresses: [CANIdentifier], hasFallback: Bool) {
    let isRead = OBDQuery.readServices.contains(request.first ?? 0)
    let known = ecus.filter { ecu in identifiers.contains { $0.is29Bit == ecu.is29Bit } }
    switch state {
    case .functional: return (identifiers, false)
    case .physical where request == Self.supportedPIDs: return (identifiers, true)
    case .unknown where isRead: return (identifiers, true)
    case .unknown, .physical: return known.isEmpty ? (identifiers, isRead) : (known, false)
    }
  }

  /// Handles an exchange that is over, with the messages that it received.
  mutating func concluded(_ exchange: FramesExchange) {
    let isComplete = exchange.request.bytes == Self.supportedPIDs
    guard !exchange.messages.isEmpty else {
      guard case .functional = state, isComplete, exchange.isFunctional else { return }
      misses += 1
      if misses >= Self.maxMisses { reset() }
      return
    }
    if exchange.usesFallback {
      let responding = exchange.respondingAddresses
      (state, ecus) = isComplete ? (.physical, responding) : (state, ecus + responding.filter { !ecus.contains($0) })
    } else if exchange.isFunctional {
      (state, ecus, misses) = (.functional, [], 0)
    }
  }

  mutating func reset() { self = FunctionalAddressing() }

  /// The ECU that is asked first if none responds to a functional request.
  static func engine(for functional: CANIdentifier) -> CANIdentifier { functional.is29Bit ? .engine29Bit : .engine }

  /// The other ECUs, which are asked if the engine ECU responds: those that ISO 15765-4 reserves, or the engine and transmission ECUs of
  /// SAE J2178-1.
  static func others(than engine: CANIdentifier) -> [CANIdentifier] {
    engine.is29Bit
      ? (0x11...0x18).map { CANIdentifier(number: 0x18DA_00F1 | $0 << 8, is29Bit: true) } : (0x7E1...0x7E7).map { CANIdentifier($0) }
  }
}
