// The camera's stream. As built the car hears nothing between VideoStream On and the first picture that somebody fetched:
// so it is switched on only while nobody drives, the machine fetches that picture itself at once, and nobody begins to
// drive before. What was begun is brought to its end even where nobody waits for it any more.
// Facts: autott.md §6; Cameras.py, whose server stands one port on and hangs up on who asks before the stream is on.

/// What is known of the stream.
enum CarCamera: Sendable {
  case off, on
  case starting(CarCameraStart)
  /// No picture came, and the car may still wait for somebody to fetch one.
  case stuck

  var isStarting: Bool { if case .starting = self { true } else { false } }

  /// The car hears nothing.
  var isBlocking: Bool { if case .starting(let start) = self { start.step.isFetching } else { false } }

  /// The car can be asked what takes it time.
  var isQuiet: Bool {
    switch self {
    case .off, .on: true
    case .starting, .stuck: false
    }
  }

  var nextWake: Instant? { if case .starting(let start) = self { start.nextWake } else { nil } }

  var trouble: String? {
    if case .stuck = self {
      "the camera gave no picture, and the car may hear nothing until it does: restart the car's program"
    } else {
      nil
    }
  }

  mutating func forget(_ id: CommandID) {
    guard case .starting(var start) = self, start.id == id else { return }
    start.id = nil
    self = .starting(start)
  }

  /// The car answers again.
  mutating func heardModes() { if case .stuck = self { self = .off } }
}

/// A stream that is being switched on.
struct CarCameraStart: Sendable {
  enum Step: Sendable {
    /// The words wait for their turn.
    case waiting
    /// The car was told, as of then; the link to its server is awaited, or a picture over it, or the next try.
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
  /// The caller hears as often that it still lasts.
  static let tellInterval: Nanoseconds = 2 * .second

  var id: CommandID?
  var step = Step.waiting
  /// When it was wished for, and when it is given up.
  let begun: Instant
  var deadline: Instant?
  var told = 0
  var reader = MotionJPEG()

  init(for id: CommandID, at now: Instant) { (self.id, begun) = (id, now) }

  var tellDue: Instant? { id.map { _ in begun &+ Int64(told + 1) &* Self.tellInterval } }
  var nextWake: Instant? { [step.due, deadline, tellDue].compactMap(\.self).min() }
}
