// The serial dialogue: one command is in flight, with a deadline; only the prompt `>` ends its reply. To resynchronise, a space is sent,
// and input is discarded until the line is quiet. A space only aborts a running command; a carriage return would repeat the last command.
// A reply has at most 16 KiB.

struct ELMDialogue: Sendable {
  private enum State {
    /// The adapter waits for a command.
    case idle
    /// A command was sent; the prompt must arrive before the deadline.
    case awaiting(deadline: Instant)
    /// A space was sent; input is discarded until the line is quiet.
    case draining(quietAt: Instant, giveUpAt: Instant)
  }

  /// The result of checking the deadline.
  enum Expiry { case nothing, timedOut, resynchronised, neverQuiet }

  static let maxReplyLength = 16 * 1024
  private static let maxLineLength = 256
  /// The line is quiet after this time without input.
  private static let quietTime: Nanoseconds = 100 * .millisecond
  private static let timeout: Nanoseconds = 5 * .second

  private var state = State.idle
  /// The reply to the last command, without its prompt and NULs.
  private(set) var reply: [UInt8] = []
  /// The command in flight or just answered, with its carriage return.
  private(set) var command: [UInt8] = []
  /// The last unexpected line that is not a notice.
  private var unexpectedLine: [UInt8] = []
  /// The unexpected line that is being received.
  private var partialLine: [UInt8] = []
  private var receivedNoise = false
  /// Consecutive resynchronisations without a usable reply. Each waits longer than the previous one, for slow links.
  private var resynchronisations = 0

  /// Whether unexpected text was received: resynchronise before the next command.
  var hasUnexpectedText: Bool { receivedNoise || !unexpectedLine.isEmpty || !partialLine.isEmpty }

  /// The unexpected text, for display.
  var unexpectedText: [UInt8] {
    !unexpectedLine.isEmpty ? unexpectedLine : !partialLine.isEmpty ? partialLine : Array("(noise)".utf8)
  }

  /// Whether no command is in flight, and no resynchronisation is in progress.
  var isIdle: Bool { if case .idle = state { true } else { false } }

  /// The next deadline, or nil.
  var deadline: Instant? {
    switch state {
    case .idle: nil
    case .awaiting(let deadline): deadline
    case .draining(let quietAt, let giveUpAt): min(quietAt, giveUpAt)
    }
  }

  /// Resets the dialogue for a new link.
  mutating func reset() {
    self = ELMDialogue()
  }

  /// Begins a command, which ends with a carriage return. Call it only while idle.
  mutating func begin(_ command: [UInt8], deadline: Instant) {
    self.command = command
    reply.removeAll(keepingCapacity: true)
    discardUnexpectedText()
    state = .awaiting(deadline: deadline)
  }

  /// Begins a resynchronisation; the caller sends the space.
  mutating func resynchronise(at now: Instant) {
    let quietTime = Self.quietTime << Int64(min(resynchronisations, 3))
    resynchronisations += 1
    discardUnexpectedText()
    reply.removeAll(keepingCapacity: reply.count < 1024)
    state = .draining(quietAt: now &+ quietTime, giveUpAt: now &+ Self.timeout)
  }

  /// Records that the last reply was usable.
  mutating func noteUsableReply() {
    resynchronisations = 0
  }

  /// Handles an expired deadline. Call it before anything else: bytes that arrive after the deadline belong to no command.
  mutating func expire(at now: Instant) -> Expiry {
    switch state {
    case .awaiting(let deadline) where now >= deadline:
      state = .idle
      return .timedOut
    case .draining(let quietAt, _) where now >= quietAt:
      state = .idle
      discardUnexpectedText()
      return .resynchronised
    case .draining(_, let giveUpAt) where now >= giveUpAt:
      state = .idle
      return .neverQuiet
    default: return .nothing
    }
  }

  /// Processes received bytes, which can be split anywhere.
  mutating func receive(_ bytes: [UInt8], at now: Instant) -> AdapterArrival {
    var arrival = AdapterArrival()
    switch state {
    case .idle: scanUnsolicited(bytes[...], &arrival)
    case .draining(_, let giveUpAt):
      state = .draining(quietAt: now &+ Self.quietTime << Int64(min(max(resynchronisations - 1, 0), 3)), giveUpAt: giveUpAt)
      scanUnsolicited(bytes[...], &arrival)
    case .awaiting:
      let scan = Self.scan(bytes)
      let end = scan.prompt ?? bytes.count
      if reply.count &+ end > Self.maxReplyLength {
        state = .idle
        arrival.noteOverflow()
        return arrival
      }
      if end == bytes.count { reply.append(contentsOf: bytes) } else { reply.append(contentsOf: bytes[..<end]) }
      if scan.hasNUL { reply.removeAll { $0 == 0 } }
      if scan.prompt != nil {
        state = .idle
        arrival.noteReply()
        if end + 1 < bytes.count { scanUnsolicited(bytes[(end + 1)...], &arrival) }
      }
    }
    return arrival
  }

  /// The index of the prompt, and whether a NUL precedes it.
  private static func scan(_ bytes: [UInt8]) -> (prompt: Int?, hasNUL: Bool) {
    bytes.withUnsafeBufferPointer { bytes in
      var hasNUL = false
      for index in bytes.indices {
        if bytes[index] == prompt { return (index, hasNUL) }
        if bytes[index] == 0 { hasNUL = true }
      }
      return (nil, hasNUL)
    }
  }

  /// Processes text that is not a reply: a restart or an alert is reported, any other text is unexpected.
  private mutating func scanUnsolicited(_ bytes: ArraySlice<UInt8>, _ arrival: inout AdapterArrival) {
    for byte in bytes where byte != 0 {
      if isLineEnd(byte) || byte == prompt {
        finishUnsolicitedLine(&arrival)
      } else if byte >= 0x80 {
        receivedNoise = true
      } else if byte != space && partialLine.count < Self.maxLineLength {
        partialLine.append(byte)
      }
    }
  }

  private mutating func finishUnsolicitedLine(_ arrival: inout AdapterArrival) {
    guard !partialLine.isEmpty else { return }
    switch ELMLine(partialLine) {
    case .nothing: break
    case .status(let status) where status.consequence == .reinitialise || status.consequence == .wake: arrival.note(status)
    default: swap(&unexpectedLine, &partialLine)
    }
    partialLine.removeAll(keepingCapacity: true)
  }

  private mutating func discardUnexpectedText() {
    guard hasUnexpectedText else { return }
    unexpectedLine.removeAll(keepingCapacity: true)
    partialLine.removeAll(keepingCapacity: true)
    receivedNoise = false
  }

  /// Whether the last line of the reply is `OK`.
  var isAcknowledged: Bool {
    let text = reply[bodyStart...]
    guard let end = text.lastIndex(where: { !isBlank($0) }) else { return false }
    let start = text[...end].lastIndex(where: isLineEnd) ?? text.startIndex
    return text[start...end].drop(while: isBlank).elementsEqual("OK".utf8)
  }

  /// The status of an adapter that restarted instead of acknowledging the command; nil if it did not restart.
  var restartStatus: ELMStatus? {
    if isAcknowledged { return nil }
    for line in lines(of: reply[bodyStart...]) {
      if case .status(let status) = ELMLine(line), status.consequence == .reinitialise { return status }
    }
    return nil
  }

  /// The voltage of a reply such as `12.4V`, in V; nil for any other reply.
  var voltage: Double? {
    let text = String(decoding: firstLine, as: UTF8.self)
    return text.hasSuffix("V") ? Double(text.dropLast()).flatMap { (0...60).contains($0) ? $0 : nil } : nil
  }

  var isNotUnderstood: Bool { ELMLine(firstLine) == .status(.notUnderstood) }
  private var firstLine: [UInt8] { lines(of: reply[bodyStart...]).first ?? [] }

  /// The index in `reply` at which the reply proper begins: after the echo of the command, if there is one.
  var bodyStart: Int { start.bodyStart }
  /// Whether the reply begins with the echo of the command.
  var hasEcho: Bool { start.hasEcho }

  private var start: (bodyStart: Int, hasEcho: Bool) {
    let start = reply.firstIndex { !isBlank($0) } ?? reply.count
    let echo = command.dropLast()
    let end = start + echo.count
    guard !echo.isEmpty, end <= reply.count, reply[start..<end].elementsEqual(echo) else { return (start, false) }
    if end == reply.count || isBlank(reply[end]) { return (end, true) }
    // If middleware drops the line ends, the response directly follows the echo.
    return reply[end...].contains(where: isLineEnd) ? (start, false) : (end, true)
  }
}
