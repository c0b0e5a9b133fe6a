// The camera's stream. After VideoStream On, an as-built car ignores all commands until a client has fetched the first picture. So the
// stream is switched on only while the car is not driven, and the machine then fetches that picture itself, over a separate link. Driving
// cannot start before the picture has arrived. The start of the stream continues even if its caller has disconnected, so that its result is
// known. If no picture arrives, the machine goes on fetching one at longer intervals until the car reads commands: that frees the car, for
// example if its program hung meanwhile. Until then, nothing is driven, and the stream is not switched on again.
// Source: AutoTT, Cameras.py: the server listens on the next port, and closes connections before the stream is on.

struct CarCamera: Sendable {
  private enum State: Sendable {
    case off, on
    case starting(Start)
    /// No picture has arrived in time, so the car may ignore commands until one is fetched.
    case stuck(Start, CarReadCheck)
  }

  /// The error with which queued commands fail if no picture arrives, because the car may have ignored them.
  static let noPicture = CommandError.refused(
    code: .noPicture, "no picture from the camera, and the car may ignore commands: wait until it responds, or restart its program")
  /// The commands that replace the queued ones if no picture arrives.
  static let restart = [CarQueuedCommand(.video(false), [.videoStream(false)]), CarQueuedCommand(.greeting, [.modes])]

  private static let timeout: Nanoseconds = 15 * .second
  private static let connectTimeout: Nanoseconds = 3 * .second
  private static let readTimeout: Nanoseconds = 5 * .second
  private static let retryInterval: Nanoseconds = 500 * .millisecond
  /// The interval between attempts to fetch a picture after the timeout.
  private static let rescueInterval: Nanoseconds = 10 * .second

  private let dialect: CarDialect
  private let endpoint: CarEndpoint?
  private var state = State.off

  init(_ options: CarOptions) { (dialect, endpoint) = (options.dialect, options.endpoint) }

  /// The picture that is being fetched.
  private var fetch: Start? {
    switch state {
    case .off, .on: nil
    case .starting(let start), .stuck(let start, _): start
    }
  }

  var isStarting: Bool { if case .starting = state { true } else { false } }

  /// Whether the car ignores commands until its first picture is fetched.
  var isBlocking: Bool { if case .starting(let start) = state { start.step.isFetching } else { false } }

  /// Whether slow requests can be sent, because the camera is neither starting nor stuck.
  var isQuiet: Bool {
    switch state {
    case .off, .on: true
    case .starting, .stuck: false
    }
  }

  var nextWake: Instant? { fetch?.nextWake }

  /// When the car's modes must be requested, to find out whether it reads commands.
  var modesDue: Instant? { if case .stuck(_, let check) = state { check.requestDue } else { nil } }

  var fault: String? {
    if case .stuck = state {
      "no picture from the camera, and the car may ignore commands until there is one: restart the car's program"
    } else {
      nil
    }
  }

  /// Why driving is not possible now, or nil if it is.
  var drivingRefusal: String? {
    switch state {
    case .starting: "the camera is starting, and the car would ignore Stop: wait until it has started"
    case .stuck: "the car is waiting for its camera and would ignore Stop: wait until it responds, or restart its program"
    case .off, .on: nil
    }
  }

  /// Publishes the URL of the stream.
  func publishURL(_ effects: inout Effects) {
    if let endpoint {
      effects.publish(.videoURL, .string(endpoint.video))
    } else {
      effects.withdraw(.videoURL, "unknown: the link has no host")
    }
  }

  // MARK: Commands

  /// The immediate reply to a command that switches the stream on; nil if the stream must be started first.
  func reply(isDriven: Bool) -> Result<Report, CommandError>? {
    if isDriven {
      let message = "the car is being driven and would ignore Stop while its camera starts: switch it on afterwards"
      return .failure(.refused(code: .driving, message))
    }
    if case .on = state { return .success(Report()) }
    if isStarting { return .failure(.refused(code: .busy, "the camera is already starting")) }
    if case .stuck = state { return .failure(Self.noPicture) }
    if dialect == .asBuilt, endpoint == nil {
      let message = "the first picture cannot be fetched, because the link has no host and port: use tcp:HOST:PORT"
      return .failure(.refused(code: .noHost, message))
    }
    return nil
  }

  /// Begins a start of the stream; the caller queues its command.
  mutating func beginStart(for id: CommandID, at now: Instant, _ effects: inout Effects) {
    state = .starting(Start(for: id, at: now))
    effects.withdraw(.video, "the camera is starting")
  }

  mutating func cancel(_ id: CommandID) {
    guard case .starting(var start) = state, start.id == id else { return }
    start.callerDisconnected()
    state = .starting(start)
  }

  // MARK: Events of the link to the car

  /// Withdraws the state of the stream, because it is unknown.
  func withdraw(_ reason: String, _ effects: inout Effects) { effects.withdraw(.video, reason) }

  /// Publishes the initial state after the car's first message over this link.
  func publishInitialState(_ effects: inout Effects) {
    if dialect == .asBuilt { effects.publish(.video, .bool(false)) } else { effects.withdraw(.video, "not reported") }
  }

  /// Handles the car's list of modes.
  mutating func modesReceived(at now: Instant, _ effects: inout Effects) {
    guard case .stuck(let start, var check) = state else { return }
    guard check.modesReceived(at: now) else { return state = .stuck(start, check) }
    closeLink(&effects)
    state = .off
    effects.publish(.video, .bool(false))
  }

  /// Notes that the car's modes are requested.
  mutating func modesRequested(at now: Instant) {
    guard case .stuck(let start, var check) = state else { return }
    check.modesRequested(at: now)
    state = .stuck(start, check)
  }

  /// Connects to the camera's server, after VideoStream On was passed to the link.
  mutating func videoRequested(at now: Instant, _ effects: inout Effects) {
    guard dialect == .asBuilt, case .starting(var start) = state else { return }
    start.videoRequested(timeoutAt: now &+ Self.timeout)
    connect(start, at: now, &effects)
  }

  /// Handles a VideoStream message that the link has accepted. In the documented dialect, the stream is then on, and no picture is fetched.
  mutating func videoSwitched(_ isOn: Bool, for id: CommandID?, _ effects: inout Effects) {
    var id = id
    switch state {
    case .starting(let start):
      guard isOn, dialect == .documented else { break }
      state = .on
      id = start.id
    case .on, .off: state = isOn ? .on : .off
    // It is unknown whether the car reads the message. Its stream is off once it is known to have read it.
    case .stuck: return effects.succeed(command: id)
    }
    if !isStarting { effects.publish(.video, .bool(isOn)) }
    effects.succeed(command: id)
  }

  /// Fails a start, because the command cannot be sent, or the link to the car is lost or being closed.
  mutating func failStart(_ error: CommandError, _ effects: inout Effects) {
    closeLink(&effects)
    if case .starting(let start) = state {
      effects.withdraw(.video, "the camera did not start")
      effects.fail(command: start.id, error)
    }
    state = .off
  }

  /// Closes the link to the server if a picture is being fetched.
  private func closeLink(_ effects: inout Effects) {
    if let fetch, fetch.step.isFetching { effects.append(.closeLink(.video)) }
  }

  private mutating func update(_ start: Start) {
    if case .stuck(_, let check) = state { state = .stuck(start, check) } else { state = .starting(start) }
  }

  // MARK: Events of the link to the server

  /// Handles a state change of the link to the server; returns the request to send, if any.
  mutating func linkChanged(_ change: LinkState, at now: Instant, _ effects: inout Effects) -> [UInt8]? {
    guard var start = fetch, let endpoint else { return nil }
    switch (change, start.step) {
    case (.up, .connecting):
      start.enter(.reading(until: now &+ Self.readTimeout))
      update(start)
      return MotionJPEG.request(host: endpoint.authority, path: CarEndpoint.videoPath)
    case (.down, .connecting), (.down, .reading): retry(at: now, &effects)
    default: break
    }
    return nil
  }

  /// Handles data from the server. If it is not a picture, returns the reason as a message; the caller then calls `retry`.
  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) -> String? {
    guard var start = fetch, case .reading = start.step else { return nil }
    switch start.firstEvent(in: bytes) {
    case .frame:
      effects.append(.closeLink(.video))
      if case .stuck(_, var check) = state {
        check.pictureFetched(at: now)
        start.enter(.waiting(until: now &+ Self.rescueInterval))
        state = .stuck(start, check)
      } else {
        state = .on
        effects.publish(.video, .bool(true))
        effects.succeed(command: start.id)
      }
    case .failed(let message): return message
    case nil: update(start)
    }
    return nil
  }

  /// Closes the link to the server and connects again later, because the server has closed the connection, or has no picture yet.
  mutating func retry(at now: Instant, _ effects: inout Effects) {
    guard var start = fetch else { return }
    start.enter(.waiting(until: now &+ (isStarting ? Self.retryInterval : Self.rescueInterval)))
    effects.append(.closeLink(.video))
    update(start)
  }

  /// Handles timeouts; returns true if the start has timed out without a picture. The car may then ignore commands until it responds.
  mutating func expire(at now: Instant, _ effects: inout Effects) -> Bool {
    guard var start = fetch else { return false }
    if let deadline = start.deadline, now >= deadline {
      state = .stuck(start.rescue(at: now &+ Self.rescueInterval), CarReadCheck(at: now))
      effects.append(.closeLink(.video))
      effects.withdraw(.video, "no picture from the camera")
      effects.fail(command: start.id, .timeout(milliseconds: Int(Self.timeout / .millisecond)))
      return true
    }
    start.reportProgress(of: Self.timeout, at: now, &effects)
    update(start)
    guard let due = start.step.due, now >= due else { return false }
    if case .waiting = start.step { connect(start, at: now, &effects) } else { retry(at: now, &effects) }
    return false
  }

  private mutating func connect(_ start: Start, at now: Instant, _ effects: inout Effects) {
    var start = start
    if let endpoint {
      start.enter(.connecting(until: now &+ Self.connectTimeout))
      effects.append(.openLink(.video, url: endpoint.videoLink))
    }
    update(start)
  }
}

extension CarCamera {
  /// A stream that is being switched on.
  struct Start: Sendable {
    enum Step: Sendable {
      /// VideoStream On is queued.
      case queued
      /// VideoStream On was sent, and the link to the server is being opened.
      case connecting(until: Instant)
      /// The picture was requested.
      case reading(until: Instant)
      /// The last attempt failed; the next one begins at this time.
      case waiting(until: Instant)

      var isFetching: Bool { if case .queued = self { false } else { true } }
      var due: Instant? {
        switch self {
        case .queued: nil
        case .connecting(let until), .reading(let until), .waiting(let until): until
        }
      }
    }

    private static let progressInterval: Nanoseconds = 2 * .second

    private(set) var id: CommandID?
    private(set) var step = Step.queued
    /// When the client's command arrived.
    private let begun: Instant
    /// When the start times out; nil while the command is queued.
    private(set) var deadline: Instant?
    /// The number of progress reports.
    private var reports = 0
    private var reader = MotionJPEG()

    init(for id: CommandID, at now: Instant) { (self.id, begun) = (id, now) }

    private var progressDue: Instant? { id.map { _ in begun &+ Int64(reports + 1) &* Self.progressInterval } }
    var nextWake: Instant? { [step.due, deadline, progressDue].compactMap(\.self).min() }

    mutating func callerDisconnected() { id = nil }

    /// The same without a caller and a timeout, with the next attempt at this time.
    func rescue(at due: Instant) -> Start {
      var start = self
      (start.id, start.deadline) = (nil, nil)
      start.enter(.waiting(until: due))
      return start
    }

    mutating func videoRequested(timeoutAt deadline: Instant) { self.deadline = deadline }

    mutating func enter(_ step: Step) {
      if case .connecting = step { reader = MotionJPEG() }
      self.step = step
    }

    mutating func firstEvent(in bytes: [UInt8]) -> MotionJPEG.Event? { reader.read(bytes).first }

    mutating func reportProgress(of timeout: Nanoseconds, at now: Instant, _ effects: inout Effects) {
      guard let progressDue, now >= progressDue, let id else { return }
      let elapsed = now &- begun
      reports = Int(elapsed / Self.progressInterval)
      let part = min(max(Double(elapsed) / Double(timeout), 0), 1)
      effects.append(.progress(id, Report(text: "camera starting: \(elapsed / .second) s", progress: part)))
    }
  }
}

extension LinkName {
  /// The link to the camera's server, while the first picture is fetched.
  static let video: LinkName = "video"
}
