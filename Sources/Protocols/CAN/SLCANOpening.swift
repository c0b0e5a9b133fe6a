// Opens the channel of a slcan adapter: closes it, asks for the version, sets the bit rate if one is configured, and opens it. Without a
// configured bit rate, the adapter keeps its own, so that no rate is ever tried on a live bus. Adapters that acknowledge nothing are given
// a moment for each command. An adapter that rejects listening only is not opened otherwise: it would acknowledge frames.

struct SLCANOpening: Sendable {
  private enum Step: Sendable { case close, version, bitRate, open }

  enum Result: Equatable, Sendable {
    /// The next command can be sent.
    case proceed
    case opened
    /// The adapter rejects a command, for this reason.
    case failed(String)
  }

  /// The time for the replies to the first command, of which there can be several: the previous client may have sent half a line.
  private static let quietTime: Nanoseconds = 100 * .millisecond
  private static let timeout: Nanoseconds = 250 * .millisecond

  /// The configured bit rate in bit/s.
  private let bitRate: Int?
  private let listensOnly: Bool
  private var step = Step.close
  /// The end of the wait for a reply; nil if the next command can be sent.
  private(set) var deadline: Instant?
  /// The version of the adapter, as text.
  private(set) var version: String?

  /// `listensOnly`: whether the adapter neither sends nor acknowledges frames.
  init(bitRate: Int?, listensOnly: Bool = false) { (self.bitRate, self.listensOnly) = (bitRate, listensOnly) }

  /// The next command, and records that it is sent now.
  mutating func next(at now: Instant) -> [UInt8] {
    deadline = now &+ (step == .close ? Self.quietTime : Self.timeout)
    switch step {
    // The first CR ends half a line of a previous client.
    case .close: return [carriageReturn] + SLCAN.close
    case .version: return SLCAN.version
    case .bitRate: return bitRate.flatMap(SLCAN.setBitRate) ?? []
    case .open: return listensOnly ? SLCAN.listen : SLCAN.open
    }
  }

  /// Handles what the adapter says; nil if it is no reply to the command in flight.
  mutating func receive(_ item: SLCANDecoder.Item) -> Result? {
    if case .identity(let text) = item, text.first != UInt8(ascii: "N") { version = printable(text, limit: 40) }
    guard deadline != nil, step != .close else { return nil }
    switch item {
    case .accepted: return advance()
    case .identity: return step == .version ? advance() : nil
    case .rejected:
      switch step {
      case .bitRate:
        return .failed("the CAN adapter rejects the bit rate; check bit-rate, and reconnect the adapter")
      case .open:
        if bitRate == nil {
          return .failed("the CAN adapter does not open its channel; set bit-rate for this device (500000 in most cars)")
        }
        guard listensOnly else { return .failed("the CAN adapter does not open its channel; reconnect the adapter") }
        return .failed("the CAN adapter rejects listening only (command L); reconnect it, update its firmware, or use another adapter")
      case .close, .version: return advance()
      }
    case .frame, .queued, .status: return nil
    }
  }

  /// Handles an expired wait.
  mutating func expire(at now: Instant) -> Result? {
    guard let deadline, now >= deadline else { return nil }
    return advance()
  }

  private mutating func advance() -> Result {
    deadline = nil
    switch step {
    case .close: step = .version
    case .version: step = bitRate == nil ? .open : .bitRate
    case .bitRate: step = .open
    case .open: return .opened
    }
    return .proceed
  }
}
