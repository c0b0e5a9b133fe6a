// Opens the channel of a slcan adapter: closes it, asks for the version, sets the bit rate if one is configured, and opens it. Without a
// configured bit rate, the adapter keeps its own, so that no rate is ever tried on a live bus. The reply to the version follows those to
// everything before it, however slow the connection is, and its delay is the round-trip time. Adapters that acknowledge nothing are given
// a moment for each command. An adapter that rejects listening only is not opened otherwise: it would acknowledge frames.

struct SLCANOpening: Sendable {
  private enum Step: Sendable { case close, version, bitRate, open }

  enum Result: Equatable, Sendable {
    /// The next command can be sent.
    case proceed
    case opened
    /// The channel cannot be opened, for this reason.
    case failed(String)
  }

  /// The fault of an adapter that replies to nothing.
  static let silentMessage = "the CAN adapter does not respond; check its power, its baud rate, and that it speaks slcan"
  /// The time for the replies to the first command, of which there can be several: the previous client may have sent half a line.
  private static let quietTime: Nanoseconds = 100 * .millisecond
  /// The time for the version, over the slowest network.
  private static let versionTimeout: Nanoseconds = .second
  /// The time for the other replies, besides the round-trip time.
  private static let timeout: Nanoseconds = 250 * .millisecond
  /// The unknown lines, instead of a version, that only a device with another protocol sends.
  private static let maxUnknownLines = 2
  private static let otherProtocolMessage =
    "the device does not speak slcan; check the link (that of an ELM327 adapter has no slcan:) and its baud rate"

  /// The configured bit rate in bit/s.
  private let bitRate: Int?
  private let listensOnly: Bool
  private var step = Step.close
  private var sentAt: Instant = 0
  private var unknownLines = 0
  /// Whether a frame has arrived, so that the device speaks slcan although some lines are damaged.
  private var hasFrames = false
  /// The end of the wait for a reply; nil if the next command can be sent.
  private(set) var deadline: Instant?
  /// The version of the adapter, as text.
  private(set) var version: String?
  /// The time from a command to its reply; 0 if the adapter does not report its version.
  private(set) var roundTrip: Nanoseconds = 0
  /// Whether the adapter has replied to anything.
  private(set) var hasResponded = false
  /// Whether the adapter has acknowledged the command that opens the channel.
  private(set) var isAcknowledged = false

  /// `listensOnly`: whether the adapter neither sends nor acknowledges frames.
  init(bitRate: Int?, listensOnly: Bool = false) { (self.bitRate, self.listensOnly) = (bitRate, listensOnly) }

  /// The next command, and records that it is sent now.
  mutating func next(at now: Instant) -> [UInt8] {
    sentAt = now
    switch step {
    // The first command ends half a line of a previous client. An empty line would make some firmware repeat the last frame (CANable).
    case .close:
      deadline = now &+ Self.quietTime
      return SLCAN.close + SLCAN.close
    case .version:
      deadline = now &+ Self.versionTimeout
      return SLCAN.version
    case .bitRate:
      deadline = now &+ Self.timeout &+ roundTrip
      return bitRate.flatMap(SLCAN.setBitRate) ?? []
    case .open:
      deadline = now &+ Self.timeout &+ roundTrip
      return listensOnly ? SLCAN.listen : SLCAN.open
    }
  }

  /// Handles what the adapter says; nil if it is no reply to the command in flight.
  mutating func receive(_ item: SLCANDecoder.Item, at now: Instant) -> Result? {
    switch item {
    case .unknown(let text) where step == .version && Self.isVersion(text):
      (version, hasResponded, roundTrip) = (printable(text, limit: 40), true, now &- sentAt)
      return advance()
    case .unknown: unknownLines += step == .close ? 0 : 1
    case .frame: (hasResponded, hasFrames) = (true, true)
    default: hasResponded = true
    }
    if case .identity(let text) = item, text.first != UInt8(ascii: "N") { version = printable(text, limit: 40) }
    guard deadline != nil else { return nil }
    switch (step, item) {
    case (.version, .identity):
      roundTrip = now &- sentAt
      return advance()
    case (.bitRate, .accepted): return advance()
    case (.open, .accepted):
      // An adapter that has just started replies late to the first commands.
      roundTrip = min(roundTrip, now &- sentAt)
      isAcknowledged = true
      return advance()
    case (.bitRate, .rejected): return .failed("the CAN adapter rejects the bit rate; check bit-rate, and reconnect the adapter")
    case (.open, .rejected): return .failed(rejectionMessage)
    // What arrives before the version replies to an earlier command.
    default: return nil
    }
  }

  /// Whether a line can be a version without its letter, such as the commit with which the firmware of CANable replies.
  private static func isVersion(_ text: [UInt8]) -> Bool {
    guard text.count >= 6, let first = text.first, isDigit(first) || isLetter(first) else { return false }
    return text.allSatisfy { $0 >= space && $0 < 0x7F } && text.contains(where: isDigit)
  }

  private var rejectionMessage: String {
    switch (listensOnly, bitRate) {
    case (true, nil):
      "the CAN adapter rejects listening only (command L); set bit-rate for this device, or update the firmware of the adapter"
    case (true, _?): "the CAN adapter rejects listening only (command L); reconnect it, update its firmware, or use another adapter"
    case (false, nil): "the CAN adapter does not open its channel; set bit-rate for this device (500000 in most cars)"
    case (false, _?): "the CAN adapter does not open its channel; reconnect the adapter"
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
    case .open:
      let speaksOther = version == nil && !hasFrames && unknownLines >= Self.maxUnknownLines
      return speaksOther ? .failed(Self.otherProtocolMessage) : .opened
    }
    return .proceed
  }
}
