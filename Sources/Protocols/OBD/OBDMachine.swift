// The state machine of the `obd` kind: routes inputs and the commands of clients to its components; `OBDRouter` routes the results of each
// component to the others. One adapter command is in flight at a time; when the adapter is idle, the next one is sent. A late byte, an
// unexpected reply or noise never becomes a value.
//
//   OBDMachine ─ OBDRouter ┬ AdapterSession      dialogue, setup, addressing, voltage, low power (or another AdapterDialogue)
//                          ├ VehicleSession      ┬ VehiclePolling ┬ ProtocolDetection, PollScheduler, ResponseTimeout
//                          │                     └ SleepPolicy
//                          ├ ClientSession       ┬ Queries, CodeClearingSequence
//                          └ ValueTable          schema, published values, status and fault

/// Communicates with a vehicle through an ELM327 or compatible adapter.
typealias OBDMachine = VehicleMachine<AdapterSession>

/// Communicates with a vehicle through this dialogue.
struct VehicleMachine<Dialogue: AdapterDialogue>: Machine {
  private(set) var router: OBDRouter<Dialogue>
  private let allowRaw: Bool
  /// The time of the latest input.
  private var lastInputTime: Instant = .min

  /// Creates a machine that polls `rate` times per second (0 for back to back). `allowRaw`: requests that are not read-only are allowed.
  /// `phase`: the offset of the polls within the period, 0 to 1. `voltageProperty`: the property with the voltage of the 12 V battery, for
  /// adapters that do not measure it.
  init(
    _ dialogue: Dialogue, rate: Double = 20, allowRaw: Bool = false, phase: Double = 0, vehicle choice: VehicleChoice = .auto,
    isFastOnly: Bool = false, signals: [CustomSignal] = [], overrides: PropertyOverrides = PropertyOverrides(),
    pauseConditions: PauseConditions? = nil, voltageProperty: String? = nil
  ) {
    self.allowRaw = allowRaw
    var values = ValueTable(actions: OBDActions.all, signals: signals, overrides: overrides, voltageProperty: voltageProperty)
    let polling = VehiclePolling(
      rate: rate.isFinite ? rate : 20, phase: phase, choice, isFastOnly: isFastOnly, signals, overrides, bitRate: dialogue.traits.bitRate,
      &values)
    router = OBDRouter(dialogue, VehicleSession(polling, pauseConditions), values)
  }

  var schema: Schema { router.values.schema }

  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    lastInputTime = now
    switch input {
    // A closed link or a stop ends the dialogue, so an expired deadline no longer matters.
    case .linkChanged(.main, _), .stopping: break
    default: router.expire(at: now, &effects)
    }
    switch input {
    case .started(let stored, _): router.restore(stored, &effects)
    case .linkChanged(.main, .up(_, let baud)): router.linkCameUp(baud: baud, &effects)
    case .linkChanged(.main, .down(let reason)): router.linkWentDown(reason, &effects)
    case .received(.main, let bytes): router.received(bytes, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id): router.cancel(id)
    case .time(let wall): router.timeReceived(wall, &effects)
    case .stored(let key, let failure): router.stored(key, failure, at: now, &effects)
    case .stopping:
      router.stop(&effects)
      effects.append(.stopped)
    case .wake: router.markOverdue(at: now)
    case .linkChanged, .received, .sent, .observed, .response, .rows, .leaseBegan, .leaseEnded: break
    }
    if hasSomethingDue(at: now) { router.sendNext(at: now, &effects) }
  }

  // MARK: When to send

  var nextWake: Instant? {
    let (session, scheduler) = (router.session, router.vehicle.polling.scheduler)
    if let deadline = session.deadline { return scheduler.overdueAt.map { min(deadline, $0) } ?? deadline }
    return switch session.activity {
    case .resting(let until, _), .sleeping(let until): until
    case .ready: router.clients.queries.isRunning ? nil : scheduler.nextWake(after: lastInputTime)
    case .down, .busy, .measuring: nil
    }
  }

  private func hasSomethingDue(at now: Instant) -> Bool {
    guard router.session.isIdle else { return false }
    let hasQueries = router.clients.queries.areWaiting
    return switch router.session.activity {
    case .down, .measuring: false
    case .busy: true
    case .sleeping(let until): now >= until || hasQueries
    case .resting(let until, _): now >= until
    case .ready: router.clients.queries.isRunning || router.vehicle.hasSomethingDue(router.session, hasQueries: hasQueries, at: now)
    }
  }

  // MARK: Commands of clients

  private mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    do throws(CommandError) {
      let (action, arguments) = try OBDActions.action(of: command)
      if action == OBDActions.rates {
        return effects.append(.complete(id, .success(router.vehicle.ratesReport(router.values, at: now))))
      }
      let unavailable = router.session.reasonUnavailable.map { CommandError.notConnected($0) }
      if action == OBDActions.tune {
        if let unavailable { throw unavailable }
        return try router.tune(id, &effects)
      }
      let motion = Motion(router.values.speeds, at: now)
      let query = try OBDQuery(
        id, action, arguments, router.vehicle, router.clients.clearingSequence, router.values.scales, motion,
        isResponding: router.values.status == .polling, allowRaw: allowRaw)
      if let unavailable { throw unavailable }
      if query.service == nil, router.session.traits.isFrameInterface { throw OBDQuery.needsELM }
      try router.append(query)
    } catch {
      effects.append(.complete(id, .failure(error)))
    }
  }
}

extension OBDMachine {
  /// Creates a machine for an ELM327 adapter. A stored baud rate is used only if it was stored for `link`.
  init(
    link: String = "", rate: Double = 20, allowRaw: Bool = false, phase: Double = 0, vehicle choice: VehicleChoice = .auto,
    isFastOnly: Bool = false, signals: [CustomSignal] = [], overrides: PropertyOverrides = PropertyOverrides(),
    pauseConditions: PauseConditions? = nil
  ) {
    self.init(
      AdapterSession(link: link), rate: rate, allowRaw: allowRaw, phase: phase, vehicle: choice, isFastOnly: isFastOnly, signals: signals,
      overrides: overrides, pauseConditions: pauseConditions)
  }
}
