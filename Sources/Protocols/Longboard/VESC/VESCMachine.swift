// The `longboard` machine for a VESC: polls it at fixed times, executes commands between polls, and drives it under the motion lease. At
// most one request and one write are in flight. The machine passes inputs and the commands of clients to its components; `VESCRouter`
// passes the results of one component to the others.
// Source: vedderb/bldc comm/packet.c and comm/commands.c.

/// Communicates with a VESC.
public struct VESCMachine: Machine {
  public let schema: Schema
  private(set) var router: VESCRouter

  /// Creates a machine from the options of `Kind.longboard`.
  public init(_ setup: Setup) throws(OptionError) {
    let options = try VESCOptions(setup)
    let polling = VESCPollScheduler(rate: options.rate, phase: setup.phase)
    schema = Schema(properties: VESCProperty.properties(options, period: polling.period), actions: [Self.pingCAN])
    router = VESCRouter(options, schema, polling)
  }

  public var nextWake: Instant? {
    let (session, motion) = (router.session, router.motion)
    guard session.isUp else { return nil }
    var next = min(motion.expires ?? .max, session.writeDeadline ?? motion.nextDue ?? .max)
    if session.isClosing { return next == .max ? nil : next }
    switch session.state {
    case .down: break
    case .ready: if session.write == nil { next = min(next, router.requests.nextDue) }
    case .silent(let until): if session.write == nil { next = min(next, until) }
    case .waiting(let request):
      next = min(next, request.deadline, router.requests.queue.progressDue(request.command) ?? .max)
      // Wake at the next slot as well. The response usually arrives earlier, and this saves a second timer per request.
      if !request.isOverdue, session.isEstablished { next = min(next, router.requests.polling.due) }
    }
    return next == .max ? nil : next
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    // Overdue messages must not be handled for a lost link.
    case .linkChanged(.main, _): break
    default: router.expire(at: now, &effects)
    }
    switch input {
    case .started(let restored, _): router.restore(restored, &effects)
    case .linkChanged(.main, .up): router.linkCameUp(at: now, &effects)
    case .linkChanged(.main, .down(let reason)): router.linkWentDown(reason, at: now, &effects)
    case .received(.main, let bytes) where router.session.isUp: router.received(bytes, at: now, &effects)
    case .sent(let id, let failure): router.sent(id, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id): router.cancel(id)
    case .stored(let key, let failure): router.stored(key, failure, &effects)
    case .leaseBegan(let deadline): router.beginLease(deadline, at: now, &effects)
    case .leaseEnded(let reason): router.endLease(reason, at: now, &effects)
    case .wake: if now >= router.requests.polling.due { router.pollSlotPassed() }
    case .stopping: router.beginShutdown(at: now, &effects)
    case .linkChanged, .received, .observed, .response, .rows, .time: break
    }
    router.advance(at: now, &effects)
    router.publishStatus(&effects)
  }

  private mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    func refuse(_ error: CommandError) { effects.append(.complete(id, .failure(error))) }
    if router.session.isClosing { return refuse(.notConnected("the link is being closed")) }
    switch command {
    case .set(let property, let value):
      switch VESCProperty(rawValue: property) {
      case .mode: router.setMode(value, for: id, &effects)
      case let property? where VESCProperty.targets.contains(property): router.setTarget(property, value, for: id, at: now, &effects)
      default: refuse(.refused(code: .readOnly, "the property is read-only"))
      }
    case .run(action: 0, _):
      if let reason = router.session.unavailability { return refuse(.notConnected(reason)) }
      router.scan(for: id, &effects)
    case .run: refuse(.refused(code: .notSupported, "no such action"))
    }
  }
}
