// The serial dialogue: one command in flight, its reply ended by `>` only, with a deadline per command. To resynchronise it sends a space
// (which aborts a running command and does nothing else; a carriage return would repeat the last one) and drains until the line is quiet.
// Keeps at most 16 KiB.

struct ELMDialogue: Sendable {
  private enum State {
    /// The adapter waits for a command.
    case idle
    /// A command was sent; its prompt is due by then.
    case awaiting(deadline: Instant)
    /// A space was sent; input is discarded until the line is quiet.
    case draining(quietAt: Instant, giveUpAt: Instant)
  }

  /// The result of a deadline.
  enum Expiry { case nothing, timedOut, inStep, neverQuiet }

  /// The result of received bytes.
  struct Arrival {
    /// The reply is complete, in `reply`.
    fileprivate(set) var replied = false
    /// More than 16 KiB without a prompt.
    fileprivate(set) var overflowed = false
    /// The adapter sent this status unasked.
    fileprivate(set) var unasked: ELMStatus?
  }

  static let limit = 16 * 1024
  private static let lineLimit = 256
  private static let quiet: Nanoseconds = 100 * .millisecond
  private static let timeout: Nanoseconds = 5 * .second

  private var state = State.idle
  /// The reply to the last command, without its prompt and NULs.
  private(set) var reply: [UInt8] = []
  /// The command in flight or just answered, with its carriage return.
  private(set) var command: [UInt8] = []
  /// The last unexpected line that is not a notice.
  private var stray: [UInt8] = []
  private var strayLine: [UInt8] = []
  private var heardNoise = false
  /// Drains without a good reply in between; a slow link needs longer ones.
  private var drains = 0

  /// Unexpected text has come: drain the line before the next command.
  var isOutOfStep: Bool { heardNoise || !stray.isEmpty || !strayLine.isEmpty }

  /// The unexpected text, for display.
  var strayText: [UInt8] { !stray.isEmpty ? stray : !strayLine.isEmpty ? strayLine : Array("(noise)".utf8) }

  /// Nothing is in flight and nothing is being drained.
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

  /// Begins a command (with its carriage return). Only while idle.
  mutating func begin(_ command: [UInt8], deadline: Instant) {
    self.command = command
    reply.removeAll(keepingCapacity: true)
    forgetStray()
    state = .awaiting(deadline: deadline)
  }

  /// Begins a resynchronisation; the caller sends the space.
  mutating func resynchronise(at now: Instant) {
    let longer = Self.quiet << Int64(min(drains, 3))
    drains += 1
    forgetStray()
    reply.removeAll(keepingCapacity: reply.count < 1024)
    state = .draining(quietAt: now &+ longer, giveUpAt: now &+ Self.timeout)
  }

  /// The last reply was usable.
  mutating func isInStep() {
    drains = 0
  }

  /// Handles an expired deadline. Call it before anything else: bytes after their deadline belong to no command.
  mutating func expire(at now: Instant) -> Expiry {
    switch state {
    case .awaiting(let deadline) where now >= deadline:
      state = .idle
      return .timedOut
    case .draining(let quietAt, _) where now >= quietAt:
      state = .idle
      forgetStray()
      return .inStep
    case .draining(_, let giveUpAt) where now >= giveUpAt:
      state = .idle
      return .neverQuiet
    default: return .nothing
    }
  }

  /// Takes bytes in any segmentation.
  mutating func receive(_ bytes: [UInt8], at now: Instant) -> Arrival {
    var arrival = Arrival()
    switch state {
    case .idle: listen(to: bytes[...], &arrival)
    case .draining(_, let giveUpAt):
      state = .draining(quietAt: now &+ Self.quiet << Int64(min(max(drains - 1, 0), 3)), giveUpAt: giveUpAt)
      listen(to: bytes[...], &arrival)
    case .awaiting:
      let scan = Self.scan(bytes)
      let end = scan.prompt ?? bytes.count
      if reply.count &+ end > Self.limit {
        state = .idle
        arrival.overflowed = true
        return arrival
      }
      if end == bytes.count { reply.append(contentsOf: bytes) } else { reply.append(contentsOf: bytes[..<end]) }
      if scan.hasNUL { reply.removeAll { $0 == 0 } }
      if scan.prompt != nil {
        state = .idle
        arrival.replied = true
        if end + 1 < bytes.count { listen(to: bytes[(end + 1)...], &arrival) }
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

  /// Text without a command: a restart or an alert is reported, anything else means out of step.
  private mutating func listen(to bytes: ArraySlice<UInt8>, _ arrival: inout Arrival) {
    for byte in bytes where byte != 0 {
      if isLineEnd(byte) || byte == prompt {
        finishStrayLine(&arrival)
      } else if byte >= 0x80 {
        heardNoise = true
      } else if byte != space && strayLine.count < Self.lineLimit {
        strayLine.append(byte)
      }
    }
  }

  private mutating func finishStrayLine(_ arrival: inout Arrival) {
    guard !strayLine.isEmpty else { return }
    switch ELMLine(strayLine) {
    case .nothing: break
    case .status(let status) where status.demand == .reinitialize || status.demand == .wake: arrival.unasked = status
    default: swap(&stray, &strayLine)
    }
    strayLine.removeAll(keepingCapacity: true)
  }

  private mutating func forgetStray() {
    guard isOutOfStep else { return }
    stray.removeAll(keepingCapacity: true)
    strayLine.removeAll(keepingCapacity: true)
    heardNoise = false
  }

  /// The last line of the reply is `OK`.
  var isAcknowledged: Bool {
    let text = reply[body...]
    guard let end = text.lastIndex(where: { !isBlank($0) }) else { return false }
    let start = text[...end].lastIndex(where: isLineEnd) ?? text.startIndex
    return text[start...end].drop(while: isBlank).elementsEqual("OK".utf8)
  }

  /// The adapter restarted instead of replying to a command that it should acknowledge.
  var restart: ELMStatus? {
    if isAcknowledged { return nil }
    for line in lines(of: reply[body...]) {
      if case .status(let status) = ELMLine(line), status.demand == .reinitialize { return status }
    }
    return nil
  }

  /// The reply is a voltage, `12.4V`.
  var voltage: Double? {
    let text = String(decoding: firstLine, as: UTF8.self)
    return text.hasSuffix("V") ? Double(text.dropLast()).flatMap { (0...60).contains($0) ? $0 : nil } : nil
  }

  var isNotUnderstood: Bool { ELMLine(firstLine) == .status(.notUnderstood) }
  private var firstLine: [UInt8] { lines(of: reply[body...]).first ?? [] }

  /// The start of the reply after the echo of the command, if there is one.
  var body: Int { start.body }
  /// The reply begins with the echo of the command.
  var hasEcho: Bool { start.hasEcho }

  private var start: (body: Int, hasEcho: Bool) {
    let start = reply.firstIndex { !isBlank($0) } ?? reply.count
    let echo = command.dropLast()
    let end = start + echo.count
    guard !echo.isEmpty, end <= reply.count, reply[start..<end].elementsEqual(echo) else { return (start, false) }
    if end == reply.count || isBlank(reply[end]) { return (end, true) }
    // Middleware that drops line ends glues the echo to the response.
    return reply[end...].contains(where: isLineEnd) ? (start, false) : (end, true)
  }
}
