// The `rc-car` machine: passes inputs to its components; `CarRouter` passes the results of one component to the others. The car has no
// watchdog, does not reassemble split segments, discards the data after a command that it cannot handle, and keeps driving when its client
// disconnects. So each frame is one write, commands are sent alone, no tilt is repeated after the lease has ended, and Stop is the first
// message whenever driving ends.
// Source: task123/AutoTT and task123/AutoTTApp at their last commits; the app's README for the documented dialect.

/// Drives an AutoTT car.
public struct CarMachine: Machine {
  private(set) var router: CarRouter

  public var schema: Schema { router.features.status.schema }

  /// Creates a machine from the options of `Kind.rcCar`.
  public init(_ setup: Setup) { router = CarRouter(CarOptions(setup)) }

  public var nextWake: Instant? {
    guard router.session.isUp else { return nil }
    let isDriven = router.motion.driving.isLeaseHeld
    let featuresDue = router.session.isReady ? router.features.nextWake(router.motion.sender.queue, isDriven: isDriven) : nil
    return [router.session.deadline, router.motion.nextWake(router.context), featuresDue].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    // Overdue messages must not be sent over a lost link.
    case .linkChanged(.main, _): break
    // If the write succeeded late because the system was suspended, the link must not be reset: the car would accept no other client.
    case .sent(let id, _) where router.motion.sender.write.isInFlight(id): router.expireLease(at: now, &effects)
    default: router.expire(at: now, &effects)
    }
    switch input {
    case .started(let stored, _): router.restore(stored, &effects)
    case .linkChanged(.main, .up): router.linkUp(at: now, &effects)
    case .linkChanged(.main, .down(let reason)): router.linkDown(reason, at: now, &effects)
    case .linkChanged(.video, let change): router.cameraLinkChanged(change, at: now, &effects)
    case .received(.main, let bytes): router.received(bytes, at: now, &effects)
    case .received(.video, let bytes): router.received(picture: bytes, at: now, &effects)
    case .sent(let id, let failure): router.sent(id, failure, at: now, &effects)
    case .perform(let id, let command): router.perform(CarCommand(id, command), at: now, &effects)
    case .cancelled(let id): router.cancel(id)
    case .stored(let key, let failure): router.stored(key, failure, &effects)
    case .leaseBegan(let deadline): router.beginLease(deadline, at: now, &effects)
    case .leaseEnded(let reason): router.endLease(reason, at: now, &effects)
    case .stopping: router.beginShutdown(at: now, &effects)
    case .linkChanged, .received, .observed, .response, .rows, .time, .wake: break
    }
    router.advance(at: now, &effects)
  }
}
