// Derives from the reports of a CAN adapter over several requests why there are no responses.

struct ResponseFailures: Sendable {
  enum Cause: Equatable, Sendable {
    case noResponse
    /// No other node acknowledges the frames.
    case noAcknowledgement
    /// The adapter has lost received frames.
    case lostFrames
    /// The bus has errors: another bit rate, or a wiring fault.
    case busErrors
    /// The adapter sends no frames.
    case rejectedFrames
  }

  /// The consecutive rejected frames after which the channel is reopened.
  private static let maxRejections = 3
  /// The consecutive requests without a response after which an adapter is not left to repeat the last frame, which not all of them report.
  private static let maxUnanswered = 3
  /// The pause after the bus has failed. It doubles with each failure, up to 320 s, because every attempt at a wrong bit rate disturbs the
  /// bus.
  private static let pause: Nanoseconds = 10 * .second
  private static let maxDoublings = 5

  private var rejections = 0
  private var unanswered = 0
  private var busFailures = 0
  /// Whether the last status had reported errors of the bus.
  private var hadBusErrors = false
  /// The last request, if it was not answered and its response can still arrive.
  private var lateRequest: AdapterRequest?

  /// Whether several requests in a row were not answered.
  var isSilent: Bool { unanswered >= Self.maxUnanswered }

  /// Whether the first negative response to this request can be the late one to the previous request.
  func canPrecede(_ request: AdapterRequest) -> Bool {
    guard let late = lateRequest else { return false }
    return late.addressing.target == request.addressing.target && late.bytes.first == request.bytes.first
  }

  mutating func reset() { self = ResponseFailures() }
  mutating func frameRejected() { rejections += 1 }
  mutating func frameAccepted() { rejections = 0 }

  /// Counts an exchange without a response, and returns the cause. A single report of errors of the bus can be of the past.
  mutating func cause(_ status: SLCANStatus, of exchange: FramesExchange?) -> Cause {
    unanswered += 1
    lateRequest = exchange.flatMap { $0.hasIgnored ? nil : $0.request }
    defer { hadBusErrors = status.contains(.busError) }
    if rejections >= Self.maxRejections {
      rejections = 0
      return .rejectedFrames
    }
    if status.contains(.errorPassive) || rejections > 0 { return .noAcknowledgement }
    if status.contains(.busError), hadBusErrors { return .busErrors }
    return status.isDisjoint(with: [.receiveQueueFull, .dataOverrun]) ? .noResponse : .lostFrames
  }

  /// Counts a failure of the bus, and returns the pause after it.
  mutating func nextPause() -> Nanoseconds {
    defer { busFailures = min(busFailures + 1, Self.maxDoublings) }
    return Self.pause << busFailures
  }
}
