// Driving: start and end of the lease, and set-points. Whatever ends a lease releases the motor. Nothing moves without a lease.

extension VESCMachine {
  mutating func leaseBegan(_ deadline: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    if let reason = options.allowsMotion ? reasonNotToAsk : "motion is disabled: set allow-motion = true in the configuration" {
      // The motor may turn for another client of the VESC, which we do not control.
      return effects.append(.leaseLost(reason))
    }
    motion.begin(deadline: deadline, at: now)
    withdrawTargets(&effects)
  }

  /// Ends the lease from our side.
  mutating func loseLease(_ reason: String, at now: Instant, _ effects: inout Effects) {
    letGo(reason, at: now, &effects)
    effects.append(.leaseLost(reason))
  }

  /// Releases the motor after the lease has ended for any reason.
  mutating func letGo(_ reason: String, at now: Instant, _ effects: inout Effects) {
    for id in motion.stop(at: now) { effects.append(.complete(id, .failure(.refused(code: "lease-lost", reason)))) }
    withdrawTargets(&effects)
  }

  /// Handles a set-point that is valid by the schema.
  mutating func aim(_ signal: VESCSignal, _ value: Value, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    guard motion.isHeld else {
      let message = "motion lease required: run \"vehiclectl drive\""
      return effects.append(.complete(id, .failure(.refused(code: "no-lease", message))))
    }
    guard signal != .targetDuty || options.motionDuty != nil else {
      let message =
        "max-duty-cycle is not set, and max-motor-current has no effect in duty cycle mode: use target-current, or set max-duty-cycle"
      return effects.append(.complete(id, .failure(.refused(code: "no-duty", message))))
    }
    guard let number = value.number, let setPoint = Self.setPoint(signal, number) else {
      return effects.append(.complete(id, .failure(.invalid(argument: "value", "\(value.text) is not a number"))))
    }
    if !motion.aim(setPoint, for: id, at: now) {
      effects.append(.complete(id, .failure(.refused(code: "busy", "the link is too slow for the rate of set-points"))))
    }
  }

  private static func setPoint(_ signal: VESCSignal, _ number: Double) -> VESCSetPoint? {
    func scaled(_ scale: Double) -> Int32? { number.isFinite ? Int32(exactly: (number * scale).rounded()) : nil }
    return switch signal {
    case .targetCurrent: scaled(1000).map(VESCSetPoint.current)
    case .brakeCurrent: scaled(1000).map(VESCSetPoint.brake)
    case .targetDuty: scaled(1000).map(VESCSetPoint.duty)
    case .handbrakeCurrent: scaled(1000).map(VESCSetPoint.handbrake)
    default: nil
    }
  }

  /// The link has accepted the current set-point, or failed.
  mutating func setPointSent(_ failure: String?, _ effects: inout Effects) {
    let answered = motion.takeCarried()
    if answered.isEmpty { return }
    for id in answered { effects.append(.complete(id, failure.map { .failure(.notConnected($0)) } ?? .success(Report()))) }
    guard failure == nil, let setPoint = motion.setPoint else { return }
    let (signal, number): (VESCSignal, Int32) =
      switch setPoint {
      case .current(let number): (.targetCurrent, number)
      case .brake(let number): (.brakeCurrent, number)
      case .duty(let number): (.targetDuty, number)
      case .handbrake(let number): (.handbrakeCurrent, number)
      }
    publisher.publish(signal, .float(Double(number) / 1000), &effects)
    for other in VESCSignal.targets where other != signal {
      publisher.withdraw(other, "\(publisher.name(of: signal)) is active", &effects)
    }
  }

  mutating func withdrawTargets(_ effects: inout Effects) {
    guard options.allowsMotion else { return }
    for signal in VESCSignal.targets { publisher.withdraw(signal, motion.isHeld ? "no set-point" : "not driven", &effects) }
  }
}
