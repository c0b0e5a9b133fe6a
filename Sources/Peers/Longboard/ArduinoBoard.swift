// A simulated Torq longboard: the Arduino between an HM-10 and a VESC. In the as-built dialect, its loop runs continuously and replies to
// one byte per pass. In the documented dialect, it sends a message when the phone connects, and the next one after each reply of the phone,
// or after a timeout without a reply.
// Source: ProjectTORQ.ino (order and delays of a pass, control bytes, latches); SoftwareSerial (a 63-byte buffer, no reception while
// transmitting); Torq's README for `documented`.

import Protocols

/// A simulated longboard with the ELComm protocol.
public struct ArduinoBoard: Machine {
  /// The variants of the protocol.
  public enum Dialect: String, CaseIterable, Sendable {
    /// The dialect of the original Arduino program.
    case asBuilt = "as-built"
    /// The dialect that Torq's README describes.
    case documented
  }

  public let schema = Schema()
  let dialect: Dialect
  private var faults: FaultSet<BoardFault.Kind>
  /// Whether all delays are 0.
  let isInstant: Bool
  /// The text that switches the buzzer on, in the documented dialect.
  let buzzerOn: [UInt8]
  private let ride = BoardRide()
  private let origin: Instant
  private var random: SeededRandom
  private var sendQueue = SendQueue(baud: nil)
  /// Whether the buzzer is switched on. It stays on until the control byte for off, or a reset.
  private(set) public var isBuzzerLatched = false
  /// Whether the board has latched off because of low voltage; it stays off until a reset.
  private(set) public var isLatchedOff = false
  private var bootedAt: Instant
  /// Bytes in the receive buffer.
  private var receiveBuffer: [UInt8] = []
  /// The start of the first pass after the last reply. From then on, idle passes follow one another without a pause.
  private var passStart: Instant
  /// When the loop reads the next byte; nil if there is none.
  private var nextRead: Instant?
  /// The period in which SoftwareSerial prints and cannot receive.
  private var printing: Range<Instant> = 0..<0
  /// When a documented board sends its next message if the phone does not reply.
  private var nextRepeat: Instant?
  private var messageCount = 0
  private var silentUntil: Instant = .min
  /// A message that the fault `coalesce` holds back until the next one.
  private var heldBack: [UInt8] = []
  private var isConnected = false
  /// Whether to reset the link once the send queue is empty.
  private var closesLink = false
  private var hasReportedSounding = false

  private static let bufferSize = 63
  /// The control bytes of an as-built board.
  private static let (buzzerOnByte, buzzerOffByte): (UInt8, UInt8) = (55, 45)
  /// The time that the VESC takes to reply.
  private static let vescTime: Nanoseconds = 10 * .millisecond
  /// The board's timeout for a VESC that does not reply.
  private static let vescTimeout: Nanoseconds = 100 * .millisecond
  /// The delay before, and again after, the reply to a byte.
  private static let answerDelay: Nanoseconds = 20 * .millisecond
  /// The delay at the end of each pass.
  private static let passDelay: Nanoseconds = 30 * .millisecond
  /// The time to print a message: about 14 characters at 9600 baud.
  private static let printTime: Nanoseconds = 15 * .millisecond
  private static let repeatInterval: Nanoseconds = 600 * .millisecond

  /// Creates a board whose ride starts at `origin`. `seed` determines random faults.
  public init(
    _ dialect: Dialect = .asBuilt, origin: Instant = 0, isInstant: Bool = false, buzzerOn: Int = 1, faults: [BoardFault] = [],
    seed: UInt64 = 1
  ) {
    self.dialect = dialect
    self.origin = origin
    self.isInstant = isInstant
    self.buzzerOn = Array(String(buzzerOn).utf8)
    self.faults = FaultSet(faults)
    random = SeededRandom(seed: seed)
    bootedAt = origin
    passStart = origin
  }

  /// Whether the buzzer sounds. It sounds only while the VESC replies and the board is not latched off.
  public var isSounding: Bool { isBuzzerLatched && !isLatchedOff && !hasFault(.noVESC) }

  public var nextWake: Instant? { [sendQueue.nextDue, nextRead, nextRepeat].compactMap(\.self).min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up): linkCameUp(at: now)
    case .linkChanged(.main, .down): linkWentDown(at: now)
    case .received(.main, let bytes): receive(bytes, at: now)
    case .sent(let id, let failure):
      sendQueue.sent(id)
      if failure != nil { sendQueue.clear(at: now) }
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated board takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    runLoop(at: now)
    sendQueue.flush(at: now, &effects)
    if isSounding != hasReportedSounding {
      hasReportedSounding = isSounding
      effects.append(.event(name: "buzzer", text: isSounding ? "buzzer on" : "buzzer off"))
    }
    if closesLink, sendQueue.isEmpty, !sendQueue.isSending {
      closesLink = false
      effects.append(.resetLink(.main, reason: "the board was switched off"))
    }
  }

  private mutating func linkCameUp(at now: Instant) {
    linkWentDown(at: now)
    isConnected = true
    if dialect == .documented { nextRead = readTime(after: now) }
  }

  /// Handles the end of the connection. The loop continues with its buffer and latches; its output is lost.
  private mutating func linkWentDown(at now: Instant) {
    sendQueue.reset(at: now)
    heldBack = []
    (nextRepeat, isConnected, closesLink) = (nil, false, false)
  }

  private var vescTime: Nanoseconds { hasFault(.noVESC) ? ArduinoBoard.vescTimeout : ArduinoBoard.vescTime }

  /// When the idle loop reads a byte that arrives at `now`.
  private func readTime(after now: Instant) -> Instant {
    if isInstant { return now }
    let first = passStart + vescTime
    guard now > first else { return first }
    let pass = vescTime + ArduinoBoard.passDelay
    return first + (now - first + pass - 1) / pass * pass
  }

  private mutating func receive(_ bytes: [UInt8], at now: Instant) {
    guard !printing.contains(now) else { return }
    receiveBuffer += bytes.prefix(ArduinoBoard.bufferSize - receiveBuffer.count)
    guard !receiveBuffer.isEmpty, nextRead == nil else { return }
    (nextRead, nextRepeat) = (readTime(after: now), nil)
  }

  /// Runs the pass that is due.
  private mutating func runLoop(at now: Instant) {
    if let due = nextRepeat, now >= due, nextRead == nil { (nextRead, nextRepeat) = (readTime(after: now), nil) }
    guard let due = nextRead, now >= due else { return }
    nextRead = nil
    switch dialect {
    case .asBuilt:
      guard !receiveBuffer.isEmpty else { return }
      let control = receiveBuffer.removeFirst()
      if control == Self.buzzerOnByte { isBuzzerLatched = true } else if control == Self.buzzerOffByte { isBuzzerLatched = false }
    case .documented:
      if !receiveBuffer.isEmpty { isBuzzerLatched = receiveBuffer == buzzerOn }
      receiveBuffer = []
      nextRepeat = isConnected ? now + ArduinoBoard.repeatInterval : nil
    }
    let printTime = isInstant ? now..<now : now + ArduinoBoard.answerDelay..<now + ArduinoBoard.answerDelay + ArduinoBoard.printTime
    (printing, passStart) = (printTime, isInstant ? now : printTime.upperBound + ArduinoBoard.answerDelay + ArduinoBoard.passDelay)
    sendMessage(at: now, printedAt: printTime.upperBound)
    // Each pass replies to one byte; the other bytes are handled in the next passes.
    if !receiveBuffer.isEmpty { nextRead = isInstant ? now : passStart + vescTime }
  }

  // MARK: Messages

  private func seconds(_ now: Instant) -> Double { Double(now - origin) / 1e9 }

  private func message(at now: Instant) -> String {
    let distance = ride.distance(seconds(now)) - ride.distance(seconds(bootedAt))
    let hundredths = Int(distance * 100)
    let miles = "\(hundredths < 0 ? "-" : "")\(abs(hundredths) / 100).\(abs(hundredths) / 10 % 10)\(abs(hundredths) % 10)"
    if hasFault(.noVESC) { return "255$255$0$\(miles)" }
    let volts = now - bootedAt < .second / 2 ? -1 : Int(BoardRide.voltage(seconds(now)))
    let battery = isLatchedOff ? 0 : (volts - 31) * 100 / 9
    let fields = "\(Int(BoardRide.speed(seconds(now))))$\(battery)$\(isLatchedOff ? 0 : 1)$\(miles)"
    return hasFault(.extension) ? fields + "$\(volts)$ok" : fields
  }

  private mutating func sendMessage(at now: Instant, printedAt: Instant) {
    guard now >= silentUntil else { return }
    messageCount += 1
    if activateFault(.reset, at: now) != nil { (bootedAt, isBuzzerLatched, isLatchedOff) = (now, false, false) }
    if activateFault(.offLatch, at: now) != nil { isLatchedOff = true }
    if let fault = activateFault(.silence, at: now) { silentUntil = fault.duration.map { now + $0 } ?? .max }
    guard now >= silentUntil else { return }
    if isConnected { send(Array(message(at: now).utf8), at: now, printedAt: printedAt) }
  }

  private mutating func send(_ text: [UInt8], at now: Instant, printedAt: Instant) {
    var bytes = text
    if activateFault(.noise, at: now) != nil { bytes = (0..<6).map { _ in UInt8.random(in: 0x80...0xFF, using: &random) } + bytes }
    if activateFault(.cut, at: now) != nil { bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random)) }
    if hasFault(.wrongBaud) { bytes = bytes.map { $0 &* 37 | 0x80 } }
    if activateFault(.flood, at: now) != nil { bytes = [[UInt8]](repeating: bytes, count: 200).flatMap(\.self) }
    if heldBack.isEmpty, activateFault(.coalesce, at: now) != nil { return heldBack = bytes }
    bytes = heldBack + bytes
    heldBack = []
    if activateFault(.disconnect, at: now) != nil {
      closesLink = true
      return sendQueue.add(Array(bytes.prefix(bytes.count / 2)), at: printedAt)
    }
    guard hasFault(.split) else { return sendQueue.add(bytes, at: printedAt) }
    let cut = Int.random(in: 1..<bytes.count, using: &random)
    sendQueue.add(Array(bytes[..<cut]), at: printedAt)
    sendQueue.add(Array(bytes[cut...]), at: printedAt + 15 * .millisecond)
  }

  private func hasFault(_ kind: BoardFault.Kind) -> Bool { faults.contains(kind) }

  /// Returns the fault of this kind that affects the current message, if any. A fault with a start time is returned only once.
  private mutating func activateFault(_ kind: BoardFault.Kind, at now: Instant) -> BoardFault? {
    faults.due(kind, item: messageCount, after: now - origin)
  }
}
