// A poll request and its statistics: duration, rate, and whether the vehicle supports it. The requestQueue decides when it is sent.

/// A request with its own period, and the properties of its response.
struct PollRequest: Sendable {
  /// A property at its position in the schema, with its decoder.
  struct Row: Sendable {
    let position: Int
    /// The PID that holds it, if a response holds several.
    let parameter: UInt8?
    let row: DataRow
  }

  /// A PID of service 01 and its length, which separates several in one response.
  struct Parameter: Equatable, Sendable {
    let number: UInt8
    let count: Int
  }

  /// What its response is used for.
  enum Purpose: Sendable {
    case values
    /// It requests the supported PIDs again.
    case check
    /// Its response is text, possibly in several messages: one property.
    case identity
  }

  /// Whether the vehicle supports it.
  enum Standing: Sendable, Equatable {
    case unknown, answered
    /// The vehicle rejected it or did not respond; it is retried then.
    case refused(String, until: Instant)
  }

  let target: Target
  /// Service and identifiers.
  let request: [UInt8]
  /// The PIDs of a request of service 01, each with its length.
  let parameters: [Parameter]
  private(set) var period: Nanoseconds
  /// The prefix of a response: the service, and the identifier if it is not one of several PIDs.
  let echo: [UInt8]
  private(set) var rows: [Row] = []
  /// The ECU that answered it on this connection.
  private(set) var responder: UInt32?
  /// It shares the device's rate with the fast request.
  let isFast: Bool
  let purpose: Purpose
  /// It was the fast request and failed: once answered it takes its place again.
  private(set) var isReplaced = false
  private(set) var priority = Priority.normal
  /// Its ECU reports response pending.
  private(set) var isPatient = false
  /// The next due time.
  private(set) var due: Instant = .min
  /// The recent duration.
  private(set) var cost: Nanoseconds = 60 * .millisecond
  private(set) var count = FrameCount()
  private(set) var standing = Standing.unknown
  /// Responses with fewer PIDs than requested.
  private(set) var shortAnswers = 0
  /// Consecutive missing responses.
  private(set) var misses = 0
  /// The duration was measured with the current form of the request.
  private var isTimed = false
  /// Its first round trips measure the duration: it need not fit before.
  private(set) var samples = 0
  private(set) var answers = Answers()

  /// The recent rate: the responses of this window and the previous one.
  struct Answers: Sendable {
    private var began: Instant?
    private var middle: Instant?
    private var last: Instant = .min
    private var counts = (before: 0, now: 0)

    mutating func add(at now: Instant, window: Nanoseconds) {
      if began == nil { began = now }
      if now &- (middle ?? began ?? now) >= window {
        if let middle { (began, counts) = (middle, (counts.now, 0)) } else { counts = (counts.now, 0) }
        middle = now
      }
      last = now
      counts.now += 1
    }

    mutating func forget() { self = Answers() }

    /// Responses per second, once there were two; an overdue one lowers the rate.
    func rate(at now: Instant, period: Nanoseconds) -> Double? {
      let intervals = counts.before + counts.now - 1
      guard let began, intervals > 0 else { return nil }
      return Double(intervals) * 1e9 / Double(max(max(last, now &- period) &- began, 1))
    }
  }

  init(
    _ target: Target, _ request: [UInt8], parameters: [Parameter] = [], echo: [UInt8]? = nil, period: Nanoseconds, rows: [Row] = [],
    isFast: Bool = false, priority: Priority = .normal, for purpose: Purpose = .values
  ) {
    (self.target, self.request, self.parameters, self.period) = (target, request, parameters, period)
    (self.rows, self.isFast, self.priority, self.purpose) = (rows, isFast, priority, purpose)
    self.echo = echo ?? request.prefix(1).map { $0 &+ 0x40 } + (parameters.isEmpty ? request.dropFirst() : [])
  }

  /// The same request with its rows at their positions in the schema.
  func placed(_ rows: [Row], every period: Nanoseconds, _ priority: Priority) -> PollRequest {
    var placed = self
    (placed.rows, placed.period, placed.priority) = (rows, period, priority)
    return placed
  }

  /// It is also sent for a property with this period.
  mutating func shorten(to period: Nanoseconds) { self.period = min(self.period, period) }

  var isCheck: Bool { purpose == .check }
  var isIdentity: Bool { purpose == .identity }
  var service: UInt8 { request.first ?? 0 }

  /// The command as sent, with the frame count if it is known.
  var bytes: [UInt8] {
    var bytes = hexText(request)
    // The first frame may be response pending, and an ECU that has not answered before has no count.
    if !isPatient, !isCheck, let frames = count.frames { bytes.append(contentsOf: String(frames, radix: 16, uppercase: true).utf8) }
    bytes.append(carriageReturn)
    return bytes
  }

  /// The same for an STN chip, with the header.
  func bytes(countingFrames: Bool) -> [UInt8] {
    var text = "STPX H:\(target.text),D:\(String(decoding: hexText(request), as: UTF8.self))"
    if isPatient { text += ",T:2000" } else if let number = countingFrames ? count.frames : 1 { text += ",R:\(number)" }
    return Array(text.utf8) + [carriageReturn]
  }

  /// It is sent so rarely that its duration does not matter.
  private var isOnce: Bool { isIdentity || isCheck || asksScales }
  /// It requests only the scaling of other PIDs.
  var asksScales: Bool { !parameters.isEmpty && parameters.allSatisfy { Scales.parameters.contains($0.number) } }

  var isSurveyed: Bool {
    if case .refused = standing { true } else { samples >= (isOnce ? 1 : 2) || misses >= 1 }
  }

  private var window: Nanoseconds { max(10 * .second, 3 &* period) }

  /// Responses per second, if measured.
  func rate(at now: Instant) -> Double? { answers.rate(at: now, period: period) }

  // MARK: Results

  /// It is sent now: the next one is due a period later on its grid; missed slots count once.
  mutating func asked(at now: Instant) {
    let late = due == .min ? 0 : max(now &- due, 0)
    due = due == .min ? now &+ period : due &+ (late / period &+ 1) &* period
  }

  /// The vehicle has answered it, in this many frames if that may serve as the count.
  mutating func answered(at now: Instant, took: Nanoseconds, frames: Int?, by source: UInt32?) {
    standing = .answered
    responder = source
    misses = 0
    // The duration falls slowly and rises at once.
    let knewFrames = count.frames != nil
    if let frames { count.answered(frames: frames) }
    cost = !isTimed || took > cost ? took : cost - (cost - took) / 8
    isTimed = knewFrames == (count.frames != nil)
    samples += 1
    // With the frame count it is faster: measure that at once.
    if samples < 2, !isOnce { due = now } else { answers.add(at: now, window: window) }
  }

  /// No usable response came.
  mutating func missed(at now: Instant, took: Nanoseconds) {
    misses += 1
    cost = max(cost, took)
    count.drop()
    // An ECU that does not respond is retried at growing intervals, ten minutes at most.
    due = max(due, now &+ min(period << Int64(min(misses, 10)), maxPause))
  }

  /// A former fast request is retried soon.
  private var maxPause: Nanoseconds { (isFast || isReplaced ? 15 : 600) * .second }

  /// The ECU is busy: it is sent again soon.
  mutating func busy(until: Instant) {
    misses += 1
    due = until
  }

  /// Sets the next due time.
  mutating func postpone(until due: Instant) { self.due = due }

  /// The response held fewer PIDs than requested.
  mutating func answeredShort() { shortAnswers += 1 }

  /// The adapter does not support the frame count.
  mutating func countRefused() { count.isRefused() }

  /// It is replaced as the fast request and retried after some seconds.
  mutating func replaced(at now: Instant) {
    (isReplaced, misses) = (true, 5)
    missed(at: now, took: 0)
  }

  mutating func restored() { isReplaced = false }

  /// The vehicle rejects it.
  mutating func refused(_ message: String, until: Instant) {
    standing = .refused(message, until: until)
    due = max(due, until)
  }

  /// It is sent with the long timeout, and less often, because that blocks other requests.
  mutating func becomePatient(until due: Instant) {
    isPatient = true
    period = max(period, 10 * .second)
    self.due = due
  }

  /// The same request for some of its PIDs.
  func asking(for some: some Sequence<Parameter>) -> PollRequest {
    let some = Array(some)
    var part = PollRequest(
      target, request.prefix(1) + some.map(\.number), parameters: some, period: period,
      rows: rows.filter { row in some.contains { $0.number == row.parameter } }, isFast: isFast, priority: priority)
    part.isReplaced = isReplaced
    return part
  }

  /// Resets the request.
  mutating func startOver() { (due, samples, misses, standing) = (.min, 0, 0, .unknown) }

  /// A connection begins: earlier timing is invalid.
  mutating func begin() {
    (due, samples, misses, standing, shortAnswers) = (.min, 0, 0, .unknown, 0)
    (count, cost) = (FrameCount(), 60 * .millisecond)
    (isTimed, responder, isPatient) = (false, nil, false)
    answers.forget()
  }
}
