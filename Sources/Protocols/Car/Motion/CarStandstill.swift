// Whether the car has confirmed that it stands. It drives on with the last tilt when its link is lost, and does not accept the next
// client. So it counts as standing still only after a response to Stop.
// Source: autott.md §7 (an end of file changes nothing; one client for the life of a program).

enum CarStandstill: Sendable {
  /// Unknown: no confirmation over this link.
  case unknown
  /// Continue was sent, and no Stop was confirmed since. This outlives the link and the daemon.
  case driven
  /// No response over an earlier link: another client may drive it.
  case silent
  /// A Stop was confirmed, and no Continue was sent since.
  case confirmed
}

extension CarMachine {
  /// The timeout of the action `stop`: the car's camera takes two seconds to start, and then it reads on.
  private static let stopTimeout: Nanoseconds = 2 * .second
  static let unconfirmed = "not confirmed: the car may still be driving"
  static let leftSilent = "\(unconfirmed); it did not respond when it was last connected"
  static let leftDriving = "\(unconfirmed); the link was lost before the car confirmed Stop: stop the car by hand"

  /// Why driving is not possible now: the car has not responded for too long.
  var trouble: String? { confirmation.trouble(stands: standstill == .confirmed) }

  /// Why it is unknown whether the car stands; nil: confirmed.
  var doubt: String? {
    switch session.state {
    case .greeting: return "the car has not responded yet: it may still be driving"
    case .silent: return "the car does not respond: it may still be driving"
    case .down(let reason):
      switch standstill {
      case .driven, .silent: return Self.unconfirmed
      case .confirmed, .unknown: return "link down: \(reason)"
      }
    case .ready, .ending: return standstill == .confirmed ? nil : Self.unconfirmed
    }
  }

  /// Why the car may be moving although it is not connected; nil: there is no reason to believe that.
  var leftMoving: String? {
    switch standstill {
    case .driven: Self.leftDriving
    case .silent: Self.leftSilent
    case .confirmed, .unknown: nil
    }
  }

  private static let drivenKey = "driven"

  /// Records that Continue is sent, for a daemon that is started after this one.
  mutating func drivesFromNowOn(_ effects: inout Effects) {
    if standstill != .driven { effects.append(.store(key: Self.drivenKey, [UInt8(ascii: "1")])) }
    standstill = .driven
  }

  mutating func restoreStanding(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    if stored[Self.drivenKey] != nil { standstill = .driven }
    publishMotion(&effects)
  }

  /// Publishes the motion, as far as it is known.
  mutating func publishMotion(_ effects: inout Effects) {
    if driving.isRunning {
      publish(.running, .bool(true), &effects)
    } else if let doubt {
      withdraw(.running, doubt, &effects)
    } else {
      publish(.running, .bool(false), &effects)
    }
    guard !driving.isHeld else { return }
    for signal in CarSignal.tilts { withdraw(signal, doubt ?? "not driven", &effects) }
  }

  /// Stops the car for any client with the right to control. The car confirms.
  mutating func stop(for id: CommandID, at now: Instant, _ effects: inout Effects) {
    halt(.refused(code: "stopped", "the car was stopped: use continue to drive on"), at: now, &effects)
    guard stopping.count < CarSendQueue.most else {
      return effects.append(.complete(id, .failure(.refused(code: "busy", "the car is being stopped already"))))
    }
    stopping.append((id, now &+ Self.stopTimeout))
  }

  mutating func expireStops(at now: Instant, _ effects: inout Effects) {
    while let first = stopping.first, now >= first.until {
      let message = "\(Self.unconfirmed); no response to Stop, which is repeated until the car responds"
      effects.append(.complete(stopping.removeFirst().id, .failure(.refused(code: "not-confirmed", message))))
    }
  }

  /// The car has sent its modes: a response confirms all earlier commands.
  mutating func confirm(at now: Instant, _ effects: inout Effects) {
    switch confirmation.answered(at: now) {
    case .nothing: break
    case .stopAgain: if session.isUp { queue.stop(stopWords(session.isEnding ? 1 : 3), at: now) }
    case .stopConfirmed:
      if standstill == .driven { effects.append(.store(key: Self.drivenKey, [])) }
      standstill = .confirmed
      for waiter in stopping { effects.append(.complete(waiter.id, .success(Report()))) }
      stopping = []
      publishMotion(&effects)
    }
  }
}
