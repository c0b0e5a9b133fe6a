// Whether the car stands, as far as it has confirmed it. It drives on with the last tilt when its link is cut, and whoever
// connects next is not served: so nothing here may pass for a car that stands until the car has answered behind a Stop.
// Facts: autott.md §7 (an end of file changes nothing; one client for the life of a program).

enum CarStanding: Sendable {
  /// It has said nothing of it over this link.
  case unknown
  /// It was told Continue, and has not confirmed a Stop since. This outlives the link and the daemon.
  case driven
  /// It did not answer over an earlier link: another client may drive it.
  case silent
  /// It has answered behind a Stop, and was not told Continue since.
  case confirmed
}

extension CarMachine {
  /// How long a caller of `stop` waits for the car: its camera takes two seconds to start, and then it reads on.
  private static let stopTimeout: Nanoseconds = 2 * .second
  static let unconfirmed = "not confirmed: the car may still be driving"
  static let leftSilent = "\(unconfirmed); it did not answer when it was last connected"
  static let leftDriving = "\(unconfirmed); the link was lost before the car confirmed Stop: stop the car by hand"

  /// Why nobody may drive now: the car has been asked for too long.
  var trouble: String? { settling.trouble(stands: standing == .confirmed) }

  /// Why nobody can say that the car stands; nil: it has confirmed that.
  var doubt: String? {
    switch state {
    case .greeting: return "the car has not answered yet: it may still be driving"
    case .silent: return "the car does not answer: it may still be driving"
    case .down(let reason):
      switch standing {
      case .driven, .silent: return Self.unconfirmed
      case .confirmed, .unknown: return "link down: \(reason)"
      }
    case .ready, .ending: return standing == .confirmed ? nil : Self.unconfirmed
    }
  }

  /// Why the car may be moving although it is not connected; nil: there is no reason to believe that.
  var leftMoving: String? {
    switch standing {
    case .driven: Self.leftDriving
    case .silent: Self.leftSilent
    case .confirmed, .unknown: nil
    }
  }

  private static let drivenKey = "driven"

  /// The car is told Continue: a daemon that is started after this one has to know.
  mutating func drivesFromNowOn(_ effects: inout Effects) {
    if standing != .driven { effects.append(.store(key: Self.drivenKey, [UInt8(ascii: "1")])) }
    standing = .driven
  }

  mutating func restoreStanding(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    if stored[Self.drivenKey] != nil { standing = .driven }
    sayMotion(&effects)
  }

  /// Publishes what the wheels do, as far as it is known.
  mutating func sayMotion(_ effects: inout Effects) {
    if driving.isRunning {
      publish(.running, .bool(true), &effects)
    } else if let doubt {
      withdraw(.running, doubt, &effects)
    } else {
      publish(.running, .bool(false), &effects)
    }
    guard !driving.isHeld else { return }
    for signal in CarSignal.tilts { withdraw(signal, doubt ?? "nobody drives", &effects) }
  }

  /// Any client with the right to control may stop the car. The answer is the car's.
  mutating func stop(for id: CommandID, at now: Instant, _ effects: inout Effects) {
    halt(.refused(code: "stopped", "the car was stopped: continue drives on"), at: now, &effects)
    guard stopping.count < CarOutbox.most else {
      return effects.append(.complete(id, .failure(.refused(code: "busy", "the car is being stopped already"))))
    }
    stopping.append((id, now &+ Self.stopTimeout))
  }

  mutating func expireStops(at now: Instant, _ effects: inout Effects) {
    while let first = stopping.first, now >= first.until {
      let words = "\(Self.unconfirmed); it has not answered to Stop, which is repeated until it does"
      effects.append(.complete(stopping.removeFirst().id, .failure(.refused(code: "not-confirmed", words))))
    }
  }

  /// The car told its modes: where it was asked, it has heard all that was said before.
  mutating func settle(at now: Instant, _ effects: inout Effects) {
    switch settling.answered(at: now) {
    case .nothing: break
    case .stopAgain: if isUp { outbox.stop(stopWords(isEnding ? 1 : 3), at: now) }
    case .stopConfirmed:
      if standing == .driven { effects.append(.store(key: Self.drivenKey, [])) }
      standing = .confirmed
      for waiter in stopping { effects.append(.complete(waiter.id, .success(Report()))) }
      stopping = []
      sayMotion(&effects)
    }
  }
}
