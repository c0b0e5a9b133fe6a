// The camera's stream. As built the car ignores commands between VideoStream On and the first picture that a client fetches. So
// the stream is switched on only while no client drives, the machine fetches that picture itself at once, and driving cannot start
// before. A started camera is brought to a known state even if its caller has disconnected.
// Source: autott.md §6; Cameras.py: the server listens on the next port and closes connections before the stream is on.

/// The state of the stream.
enum CarCamera: Sendable {
  case off, on
  case starting(CarCameraStart)
  /// No picture arrived; the car may still ignore commands.
  case stuck

  var isStarting: Bool { if case .starting = self { true } else { false } }

  /// The car ignores commands.
  var isBlocking: Bool { if case .starting(let start) = self { start.step.isFetching } else { false } }

  /// Slow requests can be sent.
  var isQuiet: Bool {
    switch self {
    case .off, .on: true
    case .starting, .stuck: false
    }
  }

  var nextWake: Instant? { if case .starting(let start) = self { start.nextWake } else { nil } }

  var trouble: String? {
    if case .stuck = self {
      "no picture from the camera, and the car may ignore commands until there is one: restart the car's program"
    } else {
      nil
    }
  }

  mutating func forget(_ id: CommandID) {
    guard case .starting(var start) = self, start.id == id else { return }
    start.id = nil
    self = .starting(start)
  }

  /// The car responds again.
  mutating func heardModes() { if case .stuck = self { self = .off } }
}

/// A stream that is being switched on.
struct CarCameraStart: Sendable {
  enum Step: Sendable {
    /// The command is queued.
    case waiting
    /// The command was sent at that time; the machine waits for the link to the server, a picture, or the next attempt.
    case connecting(until: Instant)
    case reading(until: Instant)
    case resting(until: Instant)

    var isFetching: Bool { if case .waiting = self { false } else { true } }
    var due: Instant? {
      switch self {
      case .waiting: nil
      case .connecting(let until), .reading(let until), .resting(let until): until
      }
    }
  }

  static let timeout: Nanoseconds = 15 * .second
  static let connectTimeout: Nanoseconds = 3 * .second
  static let readTimeout: Nanoseconds = 5 * .second
  static let rest: Nanoseconds = 500 * .millisecond
  /// The interval of progress reports.
  static let tellInterval: Nanoseconds = 2 * .second

  var id: CommandID?
  var step = Step.waiting
  /// The time of the command, and when it times out.
  let begun: Instant
  var deadline: Instant?
  var told = 0
  var reader = MotionJPEG()

  init(for id: CommandID, at now: Instant) { (self.id, begun) = (id, now) }

  var tellDue: Instant? { id.map { _ in begun &+ Int64(told + 1) &* Self.tellInterval } }
  var nextWake: Instant? { [step.due, deadline, tellDue].compactMap(\.self).min() }
}
