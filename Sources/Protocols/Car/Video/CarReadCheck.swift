// Finds out whether the car reads commands again, after it may have waited for a picture. One response does not show that, because the car
// may have sent it before it read VideoStream On. So the modes are requested again a while after the first response, when all responses to
// earlier requests have arrived.

struct CarReadCheck: Sendable {
  private enum Stage: Sendable {
    /// The car has not responded.
    case silent
    /// The car has responded, or a picture was fetched.
    case responded
    /// The modes were requested since.
    case requested
  }

  /// How long after the first response all responses to earlier requests have arrived. In between, the car can start a mode's camera, which
  /// takes 2 s, and read its status.
  private static let settlingTime: Nanoseconds = 6 * .second
  /// How long to wait for a response before the next request.
  private static let requestInterval: Nanoseconds = 30 * .second

  private var stage = Stage.silent
  /// When the next request is due.
  private(set) var requestDue: Instant

  /// Begins a check with a request for the modes, which the caller sends.
  init(at now: Instant) { requestDue = now &+ Self.requestInterval }

  /// Notes that a picture was fetched, so that the car reads the commands sent since VideoStream On.
  mutating func pictureFetched(at now: Instant) { (stage, requestDue) = (.responded, now &+ Self.settlingTime) }

  /// Handles the car's modes; returns true if the car reads commands.
  mutating func modesReceived(at now: Instant) -> Bool {
    switch stage {
    case .silent: (stage, requestDue) = (.responded, now &+ Self.settlingTime)
    case .responded: break
    case .requested: return true
    }
    return false
  }

  mutating func modesRequested(at now: Instant) {
    if case .responded = stage { stage = .requested }
    requestDue = now &+ Self.requestInterval
  }
}
