// A poll request and its statistics: duration, rate, and whether the vehicle supports it. `RequestQueue` decides when it is sent.

/// A request with its own period, and the properties in its response.
struct PollRequest: Sendable {
  /// A property at its position in the schema, with its decoder.
  struct Row: Sendable {
    let position: Int
    /// The PID that contains it, for a request of several PIDs.
    let parameter: UInt8?
    let dataRow: DataRow
  }

  /// A PID of service 01, and the length of its data in bytes. The lengths separate the PIDs in a response.
  struct Parameter: Equatable, Sendable {
    let number: UInt8
    let length: Int
  }

  /// The kind of data that is requested.
  enum Purpose: Sendable {
    case values
    /// The supported PIDs, requested again to find ECUs that did not respond during detection.
    case supportCheck
    /// The BMS data of a car that is known to be electric and was detected as a standard vehicle.
    case bmsCheck
    /// A string for one property, possibly in several messages.
    case identity
  }

  /// Whether the vehicle supports the request.
  enum Support: Sendable, Equatable {
    case unknown, answered
    /// The vehicle or the adapter rejects it, for this reason; it is sent again at this time.
    case rejected(String, until: Instant)
  }

  let target: Target
  /// The bytes of the request: service and identifiers.
  let request: [UInt8]
  /// The PIDs of a request of service 01, each with its length.
  let parameters: [Parameter]
  private(set) var period: Nanoseconds
  /// The first bytes of a response: the service, and the identifier unless PIDs are requested.
  let responsePrefix: [UInt8]
  private(set) var rows: [Row] = []
  /// The ECU that answered the request on this connection.
  private(set) var responder: UInt32?
  /// Whether it is polled at the device's rate, as the fast request is. In the queue, such a request alternates with the fast request.
  let usesDeviceRate: Bool
  let purpose: Purpose
  /// Whether it was the fast request and failed. When the ECU answers it again, it becomes the fast request again.
  private(set) var isReplaced = false
  private(set) var priority = Priority.normal
  /// Whether it is sent with the long timeout, because its ECU reports "response pending".
  private(set) var usesLongTimeout = false
  /// The time at which it is due next, or `.min` if it is due at once.
  private(set) var due: Instant = .min
  /// The expected time from sending the request to the reply, from recent measurements.
  private(set) var duration: Nanoseconds = 60 * .millisecond
  private(set) var frameCount = FrameCount()
  private(set) var support = Support.unknown
  /// The number of responses with fewer PIDs than requested.
  private(set) var partialResponses = 0
  /// The number of consecutive requests without a usable response.
  private(set) var misses = 0
  /// Whether it is sent as soon as it is due, although it may not fit into a gap: after the first lost response, and after a silence.
  private(set) var isRetriedSoon = false
  /// Whether the duration was measured with the current form of the request, that is, with or without a frame count.
  private var isDurationCurrent = false
  /// The number of measured round trips. Until its duration is measured, the request may be sent even if it does not fit into a gap.
  private(set) var samples = 0
  private(set) var recentResponses = RecentResponses()

  /// The responses of the current and the previous time window, for the recent rate.
  struct RecentResponses: Sendable {
    /// The start of the first of the two windows.
    private var began: Instant?
    /// The start of the current window, if it is the second.
    private var currentBegan: Instant?
    private var lastResponse: Instant = .min
    /// The responses in the two windows.
    private var counts = (previous: 0, current: 0)

    mutating func add(at now: Instant, window: Nanoseconds) {
      if began == nil { began = now }
      if now &- (currentBegan ?? began ?? now) >= window {
        if let currentBegan { (began, counts) = (currentBegan, (counts.current, 0)) } else { counts = (counts.current, 0) }
        currentBegan = now
      }
      lastResponse = now
      counts.current += 1
    }

    mutating func reset() { self = RecentResponses() }

    /// Responses per second; nil before the second response. An overdue response lowers the rate.
    func rate(at now: Instant, period: Nanoseconds) -> Double? {
      let intervals = counts.previous + counts.current - 1
      guard let began, intervals > 0 else { return nil }
      return Double(intervals) * 1e9 / Double(max(max(lastResponse, now &- period) &- began, 1))
    }
  }

  init(
    _ target: Target, _ request: [UInt8], parameters: [Parameter] = [], responsePrefix: [UInt8]? = nil, period: Nanoseconds,
    rows: [Row] = [],
    usesDeviceRate: Bool = false, priority: Priority = .normal, for purpose: Purpose = .values
  ) {
    (self.target, self.request, self.parameters, self.period) = (target, request, parameters, period)
    (self.rows, self.usesDeviceRate, self.priority, self.purpose) = (rows, usesDeviceRate, priority, purpose)
    self.responsePrefix = responsePrefix ?? request.prefix(1).map { $0 &+ 0x40 } + (parameters.isEmpty ? request.dropFirst() : [])
  }

  /// This request with these rows, this period and this priority.
  func placed(_ rows: [Row], every period: Nanoseconds, _ priority: Priority) -> PollRequest {
    var placed = self
    (placed.rows, placed.period, placed.priority) = (rows, period, priority)
    return placed
  }

  /// Shortens the period, because a further property of the request has this period.
  mutating func shorten(to period: Nanoseconds) { self.period = min(self.period, period) }

  var isSupportCheck: Bool { purpose == .supportCheck }
  var isBMSCheck: Bool { purpose == .bmsCheck }
  var isIdentity: Bool { purpose == .identity }
  var service: UInt8 { request.first ?? 0 }

  /// The request as sent, with the carriage return, and with the frame count if it is known.
  var bytes: [UInt8] {
    var bytes = hexText(request)
    // With a frame count, the adapter would stop waiting after a "response pending", or before the response of an ECU that did not respond
    // earlier.
    if !usesLongTimeout, !isSupportCheck, let frames = frameCount.frames {
      bytes.append(contentsOf: String(frames, radix: 16, uppercase: true).utf8)
    }
    bytes.append(carriageReturn)
    return bytes
  }

  /// The request as sent with STPX, which carries the header. `countingFrames`: the adapter counts frames instead of messages.
  func stpxBytes(countingFrames: Bool) -> [UInt8] {
    var text = "STPX H:\(target.text),D:\(String(decoding: hexText(request), as: UTF8.self))"
    if usesLongTimeout { text += ",T:2000" } else if let number = countingFrames ? frameCount.frames : 1 { text += ",R:\(number)" }
    return Array(text.utf8) + [carriageReturn]
  }

  /// Whether it is sent so rarely that its duration does not matter.
  private var isRare: Bool { isIdentity || isSupportCheck || requestsScaling }
  /// Whether it requests only the scaling of other PIDs.
  var requestsScaling: Bool { !parameters.isEmpty && parameters.allSatisfy { Scales.parameters.contains($0.number) } }

  /// Whether its duration is known, or cannot be measured because it is not answered.
  var isMeasured: Bool {
    if case .rejected = support { true } else { samples >= (isRare ? 1 : 2) || misses >= 1 }
  }

  /// The time window in which responses are counted for the rate.
  private var window: Nanoseconds { max(10 * .second, 3 &* period) }

  /// Responses per second, if measured.
  func rate(at now: Instant) -> Double? { recentResponses.rate(at: now, period: period) }

  // MARK: Results

  /// Records that it is sent now. Its next due time is a whole number of periods after the previous one.
  mutating func recordSent(at now: Instant) {
    let delay = due == .min ? 0 : max(now &- due, 0)
    due = due == .min ? now &+ period : due &+ (delay / period &+ 1) &* period
  }

  /// Records a response that took this long. `frames` is the number of its frames, or nil if it must not be used as the frame count.
  mutating func recordResponse(at now: Instant, took: Nanoseconds, frames: Int?, from source: UInt32?) {
    support = .answered
    responder = source
    (misses, isRetriedSoon) = (0, false)
    // The duration rises at once and falls slowly.
    let hadCount = frameCount.frames != nil
    if let frames { frameCount.recordFullReply(frames: frames) }
    duration = !isDurationCurrent || took > duration ? took : duration - (duration - took) / 8
    isDurationCurrent = hadCount == (frameCount.frames != nil)
    samples += 1
    // The request is faster with a frame count, so measure it again at once.
    if samples < 2, !isRare { due = now } else { recentResponses.add(at: now, window: window) }
  }

  /// Records that no usable response arrived in this time.
  mutating func recordMiss(at now: Instant, took: Nanoseconds) {
    misses += 1
    (duration, isDurationCurrent) = (max(duration, took), false)
    frameCount.drop()
    // A single response may have been lost. After that, the request is retried at growing intervals, up to `maxPause`.
    isRetriedSoon = misses == 1
    due =
      isRetriedSoon
      ? now &+ min(2 &* period, Self.firstPause) : max(due, now &+ min(period << Int64(min(misses - 1, 10)), maxPause))
  }

  /// Whether the ECU does not respond for some time: at least two requests, two periods apart, had no usable response.
  var isUnanswered: Bool { misses >= (2 &* period > Self.firstPause ? 3 : 2) }

  /// The maximum interval before the first retry.
  private static let firstPause: Nanoseconds = 5 * .second

  /// The maximum interval between retries. A former fast request is retried more often.
  private var maxPause: Nanoseconds { (usesDeviceRate || isReplaced ? 15 : 600) * .second }

  /// Postpones it to this time, because the ECU is busy.
  mutating func postpone(to due: Instant) {
    misses += 1
    (self.due, isRetriedSoon) = (due, false)
  }

  /// Retries it at this time, although it was not answered.
  mutating func retry(at now: Instant) { (due, isRetriedSoon) = (now, true) }

  /// Sets the next due time.
  mutating func setDue(_ due: Instant) { self.due = due }

  /// Records a response with fewer PIDs than requested.
  mutating func recordPartialResponse() { partialResponses += 1 }

  /// Sends no frame count, because the adapter does not support it.
  mutating func disableFrameCount() { frameCount.disable() }

  /// Records that it failed as the fast request and was replaced; it is retried after a few seconds.
  mutating func markReplaced(at now: Instant) {
    (isReplaced, misses) = (true, 6)
    recordMiss(at: now, took: 0)
  }

  /// Records that it is the fast request again, or part of it.
  mutating func markRestored() { isReplaced = false }

  /// Records that the vehicle or the adapter rejects it; it is not sent before this time.
  mutating func recordRejection(_ message: String, until: Instant) {
    support = .rejected(message, until: until)
    (due, misses, isRetriedSoon) = (max(due, until), 0, false)
  }

  /// Uses the long timeout. The period becomes longer as well, because the wait blocks other requests. The request is due at this time.
  mutating func useLongTimeout(due: Instant) {
    usesLongTimeout = true
    period = max(period, 10 * .second)
    self.due = due
  }

  /// This request, reduced to these of its PIDs.
  func requesting(only parameters: some Sequence<Parameter>) -> PollRequest {
    let parameters = Array(parameters)
    var part = PollRequest(
      target, request.prefix(1) + parameters.map(\.number), parameters: parameters, period: period,
      rows: rows.filter { row in parameters.contains { $0.number == row.parameter } }, usesDeviceRate: usesDeviceRate, priority: priority)
    part.isReplaced = isReplaced
    return part
  }

  /// Resets due time and support: the vehicle may be another one.
  mutating func resetSupport() { (due, samples, misses, support, isRetriedSoon) = (.min, 0, 0, .unknown, false) }

  /// Resets everything that was learned, at the beginning of a connection.
  mutating func reset() {
    resetSupport()
    partialResponses = 0
    (frameCount, duration) = (FrameCount(), 60 * .millisecond)
    (isDurationCurrent, responder, usesLongTimeout) = (false, nil, false)
    recentResponses.reset()
  }
}
