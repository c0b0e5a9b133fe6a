// Derives the status and the fault of the device from the states of its components.

enum CarCondition {
  static func publish(_ session: CarSession, _ motion: CarMotion, _ features: CarFeatures, _ effects: inout Effects) {
    let fault = motion.fault
    switch session.state {
    case .down: publish("waiting", fault: motion.standstill.fault, &effects)
    case .greeting: publish("greeting", fault: motion.standstill.fault, &effects)
    case .silent: publish("silent", fault: CarSession.silentMessage, &effects)
    case .closing: publish("stopping", fault: nil, &effects)
    case .ready where fault != nil && !motion.standstill.isConfirmed: publish("unconfirmed", fault: fault, &effects)
    case .ready where features.status.isUnanswered: publish("silent", fault: features.camera.fault ?? CarMotion.lostMessage, &effects)
    case .ready where features.camera.isStarting: publish("starting-camera", fault: nil, &effects)
    case .ready:
      let published = features.camera.fault ?? fault.map { _ in CarMotion.lostMessage }
      publish(motion.driving.isLeaseHeld ? "driving" : "ready", fault: published, &effects)
    }
  }

  private static func publish(_ status: String, fault: String?, _ effects: inout Effects) {
    effects.append(.status(status))
    effects.append(.fault(fault))
  }
}
