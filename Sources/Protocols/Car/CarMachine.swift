// The `car` machine. The car has no watchdog, does not reassemble split segments, discards the data after a command that it cannot
// handle, and drives on when its client disconnects. So each frame is one write, commands are sent alone, tilts stop with the driver,
// and Stop is the next message whenever driving ends. What is sent next follows from the state, in `advance`: a stop before a command
// before a tilt.
// Source: task123/AutoTT and task123/AutoTTApp at their last commits; the README of the app for the documented dialect.

/// Drives an AutoTT car.
public struct CarMachine: Machine {
  /// The purpose of a write in flight.
  enum WritePurpose: Equatable { case stop(CarOutboundMessage), command(CarOutboundMessage), tilt(CarTilt), liveness, disconnect }

  /// The timeout of a write.
  static let linkTimeout: Nanoseconds = .second
  public var schema: Schema { status.schema }
  let options: CarOptions
  var session = CarSession()
  var sending: (id: SendID, purpose: WritePurpose, at: Instant)?
  var liveness = CarLivenessCheck()
  var lastSend: SendID = 0
  var reader = CarReader()
  var queue = CarSendQueue()
  var driving: CarDriving
  var modes: CarModes
  var buttons = CarButtons()
  var status: CarStatus
  var camera: CarCamera
  var confirmation = CarStopConfirmation()
  var modeQuery: CarModeQuery
  var test = CarConnectionTest()
  var settings: CarSettings
  /// The commands that wait for the car to confirm Stop, and their timeout.
  var stopping: [(id: CommandID, until: Instant)] = []
  var standstill = CarStandstill.unknown
  /// A link was lost before the car was stopped.
  var owesStop = false
  /// The current last-will frames.
  var willVariant: WillVariant?
  var condition = CarCondition()

  /// Creates a machine from the options of `Kind.car`.
  public init(_ setup: Setup) {
    options = CarOptions(setup)
    driving = CarDriving(override: options.tiltInterval)
    settings = CarSettings(page: options.endpoint?.page)
    status = CarStatus(options)
    modes = CarModes(options.dialect)
    modeQuery = CarModeQuery(options.dialect)
    camera = CarCamera(options)
  }

  public var nextWake: Instant? {
    if status.hasEarly { return .min }
    if !session.isUp { return nil }
    var due = [driving.deadmanTimer.expires, stopping.first?.until]
    due.append(sending.map { $0.at &+ Self.linkTimeout } ?? nextTurn)
    switch session.state {
    case .down: break
    case .greeting(let until): due += [until, askTurn]
    case .ending(let until): due += [until, askTurn]
    case .silent: due.append(askTurn)
    case .ready: due += [askTurn, statusDue, modeQuery.deadline, camera.nextWake, status.deadline, testDue, livenessDue, hungAt]
    }
    return due.compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    if status.hasEarly { status.publishEarly(&effects) }
    switch input {
    // Overdue messages must not be sent over a lost link.
    case .linkChanged(.main, _): break
    // If the write succeeded late because the system was suspended, the link must not be reset: the car would accept no other client.
    case .sent(let id, _) where id == sending?.id: expireLease(at: now, &effects)
    default: expire(at: now, &effects)
    }
    switch input {
    case .started(let restored, _): restore(restored, &effects)
    case .linkChanged(.main, .up): linkCameUp(at: now, &effects)
    case .linkChanged(.main, .down(let reason)): linkWentDown(reason, at: now, &effects)
    case .linkChanged(.video, let change): cameraLinkChanged(change, at: now, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .received(.video, let bytes): pictureCame(bytes, at: now, &effects)
    case .sent(let id, let failure): sent(id, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id): forget(id)
    case .stored(let key, let failure): settings.stored(key, failure, &effects)
    case .leaseBegan(let deadline): leaseBegan(deadline, at: now, &effects)
    case .leaseEnded(let reason): if driving.isHeld { endLease(reason, at: now, &effects) }
    case .stopping: end(at: now, &effects)
    case .linkChanged, .received, .observed, .response, .rows, .time, .wake: break
    }
    pursueInquiry(&effects)
    advance(at: now, &effects)
    renewWill(&effects)
    report(&effects)
  }

  private mutating func expireLease(at now: Instant, _ effects: inout Effects) {
    if let reason = driving.deadmanTimer.expiryReason(at: now) { loseLease(reason, at: now, &effects) }
  }

  /// Handles timeouts.
  private mutating func expire(at now: Instant, _ effects: inout Effects) {
    expireLease(at: now, &effects)
    expireStops(at: now, &effects)
    askOn(at: now)
    if let sending, now &- sending.at >= Self.linkTimeout {
      return session.isEnding ? finish(&effects) : giveUp("write timeout", at: now, &effects)
    }
    switch session.expire(at: now, &effects) {
    case .greeting: fellSilent(&effects)
    case .ending: finish(&effects)
    case .nothing: if session.isReady { expireQuestions(at: now, &effects) }
    }
  }

  private mutating func expireQuestions(at now: Instant, _ effects: inout Effects) {
    expireStatus(at: now, &effects)
    modeQuery.expire(at: now, &effects)
    expireCamera(at: now, &effects)
    pollStatus(at: now, &effects)
    testConnection(at: now)
    checkLiveness(at: now, &effects)
  }
}
