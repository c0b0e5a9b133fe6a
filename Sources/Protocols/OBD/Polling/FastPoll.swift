// The fast request, which is polled at the device's rate: its rows, its frame count, and the bytes as sent. If it fails, a liveness check
// polls a request that all ECUs support instead. This distinguishes a silent vehicle from a failing request.

struct FastPoll: Sendable {
  /// The test of whether the ECU supports only one PID per request.
  enum OnePIDTest {
    case none
    /// The PIDs are being requested one by one.
    case running
    /// The ECU answers each PID alone, but not several PIDs together.
    case confirmed
  }

  /// The request that is polled now.
  private(set) var request: FastRequest
  /// The fast request of the detected vehicle, or nil if no vehicle with SAE J1979 PIDs has been detected and no
  /// profile is configured.
  private(set) var vehicleRequest: FastRequest?
  /// The rows of `vehicleRequest`.
  private(set) var rows: [PollRequest.Row] = []
  /// The configured period of `vehicleRequest`, or nil for the device's rate.
  private(set) var period: Nanoseconds?
  private(set) var frameCount = FrameCount()
  /// The ECU that sent the previous response.
  private(set) var responder: UInt32?
  /// The failure of `vehicleRequest` that led to the liveness check, or nil if no check is in progress.
  private(set) var livenessCheckReason: String?
  private(set) var onePIDTest = OnePIDTest.none
  /// The request as last sent, with the carriage return.
  private var bytes: [UInt8] = []
  /// The frame count in `bytes`, or nil if there is none.
  private var framesInBytes: Int?

  init(_ request: FastRequest) { self.request = request }

  /// The request as sent, with the carriage return, and with the frame count if it is allowed and known.
  mutating func bytes(allowsFrameCount: Bool) -> [UInt8] {
    let frames = allowsFrameCount ? frameCount.frames : nil
    if bytes.isEmpty || frames != framesInBytes {
      bytes = Array(request.rawValue.utf8)
      if let frames { bytes.append(contentsOf: String(frames, radix: 16, uppercase: true).utf8) }
      bytes.append(carriageReturn)
      framesInBytes = frames
    }
    return bytes
  }

  /// The configured period of the request that is polled now, or nil for the device's rate.
  var currentPeriod: Nanoseconds? { request == vehicleRequest ? period : nil }

  /// Whether PIDs of a standard vehicle are polled.
  var pollsPIDs: Bool { !request.parameters.isEmpty }

  /// The fast request as a request for the queue; without a configured period it has `defaultPeriod`.
  func asPollRequest(defaultPeriod: Nanoseconds) -> PollRequest {
    PollRequest(
      request.target, request.bytes, parameters: request.parameters, period: max(period ?? defaultPeriod, .second / 20), rows: rows,
      usesDeviceRate: period == nil)
  }

  /// Polls this request from now on. Its frame count and responder are not known yet.
  private mutating func select(_ next: FastRequest) {
    (request, frameCount, responder) = (next, FrameCount(), nil)
    bytes.removeAll(keepingCapacity: true)
  }

  /// Polls the request of a protocol candidate.
  mutating func begin(_ next: FastRequest) {
    select(next)
    livenessCheckReason = nil
  }

  /// Polls the next request for supported PIDs; the responder stays the same.
  mutating func proceed(to next: FastRequest) {
    request = next
    bytes.removeAll(keepingCapacity: true)
  }

  /// Polls the fast request of a detected vehicle; `period` is nil for the device's rate.
  mutating func begin(_ next: FastRequest, every period: Nanoseconds?) {
    select(next)
    (vehicleRequest, self.period, onePIDTest) = (next, period, .none)
  }

  mutating func setRows(_ rows: [PollRequest.Row]) { self.rows = rows }

  /// Polls this request from now on, at the device's rate or its configured period.
  mutating func replace(with next: PollRequest) {
    (rows, period) = (next.rows, next.usesDeviceRate ? nil : next.period)
    select(FastRequest(next.parameters, of: next.target))
    vehicleRequest = request
  }

  /// Records a response. `frames` is the number of its frames, or nil if it must not be used as the frame count.
  mutating func recordResponse(frames: Int?, from source: UInt32?) {
    if let frames { frameCount.recordFullReply(frames: frames) }
    responder = source
  }

  mutating func dropFrameCount() { frameCount.drop() }
  mutating func disableFrameCount() { frameCount.disable() }

  // MARK: PIDs one by one

  mutating func beginOnePIDTest() { onePIDTest = .running }
  mutating func endOnePIDTest() { onePIDTest = .none }

  /// Records the result of requesting one PID of the fast request alone.
  mutating func recordSinglePID(isAnswered: Bool) {
    if onePIDTest == .running { onePIDTest = isAnswered ? .confirmed : .none }
  }

  // MARK: Liveness check

  /// Polls a request that all ECUs support instead of the fast request, which failed with this message. Returns false if the check would
  /// show nothing, because such a request or a data record is already polled.
  mutating func beginLivenessCheck(_ message: String, on bus: OBDProtocol) -> Bool {
    guard request == vehicleRequest, !request.parameters.isEmpty else { return false }
    livenessCheckReason = message
    select(FastRequest(supportedFrom: 0, on: bus))
    return true
  }

  /// Resumes the fast request. Returns the failure that led to the check, or nil if no check was in progress.
  mutating func endLivenessCheck() -> String? {
    guard let message = livenessCheckReason, let vehicleRequest else { return nil }
    livenessCheckReason = nil
    select(vehicleRequest)
    return message
  }
}
