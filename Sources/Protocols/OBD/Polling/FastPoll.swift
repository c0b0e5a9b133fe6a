// The request polled at the device's rate: its rows, its frame count, and the bytes as sent. It can be in doubt: meanwhile the request that all
// ECUs support is polled, to distinguish a silent vehicle from a request that fails.

struct FastPoll: Sendable {
  /// The meaning of PIDs that are not answered together.
  enum FailsTogether {
    case no
    /// They are being requested one by one to find out.
    case open
    /// Each is answered alone: the ECU supports one PID per request.
    case proven
  }

  /// The request that is polled now.
  private(set) var request: RecordRequest
  /// The vehicle's fast request, as its properties are laid out; nil: the vehicle is not known by its PIDs.
  private(set) var usual: RecordRequest?
  /// The rows of `usual`.
  private(set) var rows: [PollRequest.Row] = []
  /// Its period, if it is not that of the device's rate.
  private(set) var period: Nanoseconds?
  private(set) var count = FrameCount()
  /// The ECU that answered the previous functional request.
  private(set) var responder: UInt32?
  /// Why `usual` is in doubt.
  private(set) var doubt: String?
  private(set) var failsTogether = FailsTogether.no
  /// The request as sent, with this frame count and the carriage return.
  private var bytes: [UInt8] = []
  private var writtenCount: Int?

  init(_ request: RecordRequest) { self.request = request }

  /// The request as sent, digit and carriage return included.
  mutating func bytes(withCount: Bool) -> [UInt8] {
    let frames = withCount ? count.frames : nil
    if bytes.isEmpty || frames != writtenCount {
      bytes = Array(request.rawValue.utf8)
      if let frames { bytes.append(contentsOf: String(frames, radix: 16, uppercase: true).utf8) }
      bytes.append(carriageReturn)
      writtenCount = frames
    }
    return bytes
  }

  /// The configured period of the request that is polled now; nil: the device's rate.
  var currentPeriod: Nanoseconds? { request == usual ? period : nil }

  /// PIDs of a standard vehicle are polled.
  var pollsPIDs: Bool { !request.parameters.isEmpty }

  /// The fast request as one of the other requests; `rate` is the device's period.
  func asPollRequest(at rate: Nanoseconds) -> PollRequest {
    PollRequest(
      request.target, request.bytes, parameters: request.parameters, period: max(period ?? rate, .second / 20), rows: rows,
      isFast: period == nil)
  }

  private mutating func ask(_ next: RecordRequest) {
    (request, count, responder) = (next, FrameCount(), nil)
    bytes.removeAll(keepingCapacity: true)
  }

  /// The request of a protocol candidate.
  mutating func begin(_ next: RecordRequest) {
    ask(next)
    doubt = nil
  }

  /// The next request for supported PIDs.
  mutating func proceed(to next: RecordRequest) {
    request = next
    bytes.removeAll(keepingCapacity: true)
  }

  /// The fast request of a detected vehicle.
  mutating func begin(_ next: RecordRequest, every period: Nanoseconds?) {
    ask(next)
    (usual, self.period, failsTogether) = (next, period, .no)
  }

  mutating func place(_ rows: [PollRequest.Row]) { self.rows = rows }

  /// Polls this request from now on, at the device's rate or its configured period.
  mutating func replace(with next: PollRequest) {
    (rows, period) = (next.rows, next.isFast ? nil : next.period)
    ask(RecordRequest(next.parameters, of: next.target))
    usual = request
  }

  /// It was answered, in this many frames if that may serve as the count.
  mutating func answered(frames: Int?, by source: UInt32?) {
    if let frames { count.answered(frames: frames) }
    responder = source
  }

  mutating func dropCount() { count.drop() }
  mutating func countRefused() { count.isRefused() }

  // MARK: PIDs one by one

  mutating func testOneByOne() { failsTogether = .open }
  mutating func endTest() { failsTogether = .no }

  /// A PID of it was requested alone.
  mutating func requestedAlone(isAnswered: Bool) {
    if failsTogether == .open { failsTogether = isAnswered ? .proven : .no }
  }

  // MARK: Doubt

  /// Polls the request that all ECUs support instead. Returns false if that cannot help.
  mutating func beginDoubt(_ message: String, on bus: VehicleBus) -> Bool {
    guard request == usual, !request.parameters.isEmpty else { return false }
    doubt = message
    ask(RecordRequest(supportedFrom: 0, on: bus))
    return true
  }

  /// Resumes the fast request. Returns why it was in doubt, if it was.
  mutating func endDoubt() -> String? {
    guard let message = doubt, let usual else { return nil }
    doubt = nil
    ask(usual)
    return message
  }
}
