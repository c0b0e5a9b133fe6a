// Derives the status and the fault of the device from the states of its components.

enum CarCondition {
  static func publish(_ session: CarSession, _ motion: CarMotion, _ features: CarFeatures, _ effects: inout Effects) {
    let fault = motion.fault
    switch session.state {
    case .down: publish("waiting", fault: motion.standstill.fault, &effects)
    case .greeting: publish("greeting", fault: motion.standstill.fault, &effects)
    case .silent: publish("silent", fault: CarSession.silence, &effects)
    case .ending: publish("stopping", fault: nil, &effects)
    case .ready where fault != nil && !motion.standstill.isConfirmed: publish("unconfirmed", fault: fault, &effects)
    case .ready where features.status.isUnanswered: publish("silent", fault: CarMotion.lost, &effects)
    case .ready where features.camera.isStarting: publish("starting-camera", fault: nil, &effects)
    case .ready:
      let shown = features.camera.fault ?? fault.map { _ in CarMotion.lost }
      publish(motion.driving.isHeld ? "driving" : "ready", fault: shown, &effects)
    }
  }

  private static func publish(_ status: String, fault: String?, _ effects: inout Effects) {
    effects.append(.status(status))
    effects.append(.fault(fault))
  }
}
