// One question that is asked again and again, and what became of it so far: how long it takes, how often it was answered, whether the
// vehicle knows it at all. It never decides when it is asked; the timetable does.

/// A request with its own period, and the properties that its answer holds.
struct Inquiry: Sendable {
  /// A property at its place in the schema, and where it is read.
  struct Row: Sendable {
    var position: Int
    /// The parameter whose bytes hold it, where an answer holds several.
    var parameter: UInt8?
    var row: DataRow
  }

  /// A parameter of service 01 and its number of bytes: the table of lengths is what tells several in one answer apart.
  struct Parameter: Equatable, Sendable {
    var number: UInt8
    var count: Int
  }

  /// Whether the vehicle knows it.
  enum Standing: Sendable, Equatable {
    case unknown, answered
    /// It does not, in its own words or by silence; asked again then.
    case refused(String, until: Instant)
  }

  let target: Target
  /// Service and identifiers.
  let request: [UInt8]
  /// The parameters asked for in a request of service 01, each with its number of bytes.
  let parameters: [Parameter]
  var period: Nanoseconds
  /// What an answer begins with: the service, and the identifier where it is not one of several parameters.
  let echo: [UInt8]
  var rows: [Row] = []
  /// Who answered it on this connection.
  var answerer: UInt32?
  /// It shares the device's rate with the request that is polled, where there is no time for both.
  var isFast = false
  /// It was polled, and made way because it failed: once it is answered it takes its place again.
  private(set) var hasMadeWay = false
  var priority = Priority.normal
  /// Its controller takes its time and says so.
  var isPatient = false
  /// It asks anew who is there.
  var isCheck = false
  /// Its answer is text, perhaps in several messages: one property.
  var isIdentity = false
  /// When it is due next.
  var due: Instant = .min
  /// How long it takes, of late.
  var cost: Nanoseconds = 60 * .millisecond
  var count = FrameCount()
  var standing = Standing.unknown
  /// Answers that held less than was asked for.
  var shortAnswers = 0
  /// Answers in a row that did not come.
  var misses = 0
  /// What it costs was measured as it is asked now.
  private var isTimed = false
  /// Its first round trips tell how long it takes: it need not fit before.
  var samples = 0
  private(set) var answers = Answers()

  /// How often it was answered of late: the answers of this window and the one before.
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

    /// Answers a second, once there were two; what is overdue counts.
    func rate(at now: Instant, period: Nanoseconds) -> Double? {
      let intervals = counts.before + counts.now - 1
      guard let began, intervals > 0 else { return nil }
      return Double(intervals) * 1e9 / Double(max(max(last, now &- period) &- began, 1))
    }
  }

  init(_ target: Target, _ request: [UInt8], parameters: [Parameter] = [], echo: [UInt8]? = nil, period: Nanoseconds) {
    (self.target, self.request, self.parameters, self.period) = (target, request, parameters, period)
    self.echo = echo ?? request.prefix(1).map { $0 &+ 0x40 } + (parameters.isEmpty ? request.dropFirst() : [])
  }

  var service: UInt8 { request.first ?? 0 }

  /// As it goes out, with the number of frames to wait for where that is known.
  var bytes: [UInt8] {
    var bytes = hexText(request)
    // The first frame may be one that asks for patience, and who has not answered before is not counted.
    if !isPatient, !isCheck, let frames = count.frames { bytes.append(contentsOf: String(frames, radix: 16, uppercase: true).utf8) }
    bytes.append(carriageReturn)
    return bytes
  }

  /// The same for an STN chip, with whom to ask.
  func bytes(countingFrames: Bool) -> [UInt8] {
    var text = "STPX H:\(target.text),D:\(String(decoding: hexText(request), as: UTF8.self))"
    if isPatient { text += ",T:2000" } else if let number = countingFrames ? count.frames : 1 { text += ",R:\(number)" }
    return Array(text.utf8) + [carriageReturn]
  }

  /// It is asked so seldom that what it costs does not matter.
  private var isOnce: Bool { isIdentity || isCheck || asksScales }
  /// It asks for nothing but the scales of other parameters.
  var asksScales: Bool { !parameters.isEmpty && parameters.allSatisfy { Scales.parameters.contains($0.number) } }

  var isSurveyed: Bool {
    if case .refused = standing { true } else { samples >= (isOnce ? 1 : 2) || misses >= 1 }
  }

  private var window: Nanoseconds { max(10 * .second, 3 &* period) }

  /// Answers a second, as far as there is something to say.
  func rate(at now: Instant) -> Double? { answers.rate(at: now, period: period) }

  // MARK: What becomes of it

  /// It goes out now: the next is due a period later on its grid; slots that have passed are one.
  mutating func asked(at now: Instant) {
    let late = due == .min ? 0 : max(now &- due, 0)
    due = due == .min ? now &+ period : due &+ (late / period &+ 1) &* period
  }

  /// The vehicle has answered it, in so many frames where that may be all that ever come.
  mutating func answered(at now: Instant, took: Nanoseconds, frames: Int?) {
    standing = .answered
    misses = 0
    // What it costs falls slowly and rises at once.
    let knewFrames = count.frames != nil
    if let frames { count.answered(frames: frames) }
    cost = !isTimed || took > cost ? took : cost - (cost - took) / 8
    isTimed = knewFrames == (count.frames != nil)
    samples += 1
    // With the number of frames it takes less: that is timed at once.
    if samples < 2, !isOnce { due = now } else { answers.add(at: now, window: window) }
  }

  /// Nothing of use came.
  mutating func missed(at now: Instant, took: Nanoseconds) {
    misses += 1
    cost = max(cost, took)
    count.drop()
    // A sleeping controller is left alone for longer and longer, ten minutes at most.
    due = max(due, now &+ min(period << Int64(min(misses, 10)), maxPause))
  }

  /// What was polled is wanted back soon.
  private var maxPause: Nanoseconds { (isFast || hasMadeWay ? 15 : 600) * .second }

  /// It makes way for what is polled now: it is asked again after some seconds.
  mutating func makeWay(at now: Instant) {
    (hasMadeWay, misses) = (true, 5)
    missed(at: now, took: 0)
  }

  mutating func takesItsPlace() { hasMadeWay = false }

  /// The vehicle refuses it.
  mutating func refused(_ words: String, until: Instant) {
    standing = .refused(words, until: until)
    due = max(due, until)
  }

  /// It is asked so that its answer can take a second; not so often, because nothing else is asked meanwhile.
  mutating func becomePatient() {
    isPatient = true
    period = max(period, 10 * .second)
  }

  /// The same for these of its parameters.
  func asking(for some: some Sequence<Parameter>) -> Inquiry {
    let some = Array(some)
    var part = Inquiry(target, request.prefix(1) + some.map(\.number), parameters: some, period: period)
    part.rows = rows.filter { row in some.contains { $0.number == row.parameter } }
    (part.priority, part.isFast, part.hasMadeWay) = (priority, isFast, hasMadeWay)
    return part
  }

  /// It is asked as if it had never been.
  mutating func startOver() { (due, samples, misses, standing) = (.min, 0, 0, .unknown) }

  /// A connection begins: nothing that was timed counts.
  mutating func begin() {
    (due, samples, misses, standing, shortAnswers) = (.min, 0, 0, .unknown, 0)
    (count, cost) = (FrameCount(), 60 * .millisecond)
    (isTimed, answerer, isPatient) = (false, nil, false)
    answers.forget()
  }
}
