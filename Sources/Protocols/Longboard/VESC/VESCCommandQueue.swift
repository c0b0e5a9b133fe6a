// The queue of commands other than setpoints: speed modes, and scans of the CAN bus. They are executed one at a time, between polls. Every
// command ends in exactly one `complete`, unless its caller has disconnected.

struct VESCCommandQueue: Sendable {
  static let limit = 16
  private static let busy = CommandError.refused(code: .busy, "too many queued commands: try again later")

  private enum Entry: Sendable {
    case mode(VESCModeChange)
    case scan(VESCScan)

    var commandID: CommandID? {
      switch self {
      case .mode(let change): change.commandID
      case .scan(let scan): scan.commandID
      }
    }

    mutating func callerDisconnected() {
      switch self {
      case .mode(var change):
        change.callerDisconnected()
        self = .mode(change)
      case .scan(var scan):
        scan.callerDisconnected()
        self = .scan(scan)
      }
    }
  }

  private let configured: VESCDrivetrain
  private let canID: UInt8?
  private let timeout: Nanoseconds
  /// The queued commands; the first one is being executed.
  private var entries: [Entry] = []
  private var modes: VESCModes
  /// The number of VESCs of the board; nil if it is unknown.
  private var vescs: Int?

  /// Creates an empty queue. `timeout` is the timeout of one request.
  init(_ options: VESCOptions, _ properties: [Property], timeout: Nanoseconds) {
    (configured, canID, self.timeout) = (options.drivetrain, options.canID, timeout)
    modes = VESCModes(options.modes, properties)
  }

  var count: Int { entries.count }
  /// Why the selected mode is not active; nil if it is.
  var problem: String? { modes.problem }

  // MARK: Commands

  mutating func restore(_ values: [String: [UInt8]], _ effects: inout Effects) { modes.restore(values, &effects) }

  /// Selects a speed mode. If `isReachable` is false, the VESC does not respond, and the mode is activated when it does.
  mutating func setMode(
    _ value: Value, for id: CommandID, isReachable: Bool, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    guard case .string(let name) = value, modes.contains(name) else {
      return effects.append(.complete(id, .failure(.invalid(argument: "value", "\(value.text) is not a mode of this board"))))
    }
    if isReachable { return append(.mode(VESCModeChange(name, commandID: id)), for: id, &effects) }
    do throws(CommandError) {
      try modes.select(name, for: id, &effects)
      modes.publish(&publisher, &effects)
    } catch {
      effects.fail(command: id, error)
    }
  }

  mutating func scan(for id: CommandID, _ effects: inout Effects) { append(.scan(VESCScan(commandID: id)), for: id, &effects) }

  private mutating func append(_ entry: Entry, for id: CommandID, _ effects: inout Effects) {
    guard entries.count < Self.limit else { return effects.append(.complete(id, .failure(Self.busy))) }
    entries.append(entry)
  }

  /// Detaches a command from its caller, which has disconnected; the command is completed without a reply.
  mutating func cancel(_ id: CommandID) {
    for index in entries.indices where entries[index].commandID == id { entries[index].callerDisconnected() }
    modes.cancel(id)
  }

  private mutating func fail(_ error: CommandError, _ effects: inout Effects) {
    for entry in entries { if let id = entry.commandID { effects.append(.complete(id, .failure(error))) } }
    entries.removeAll()
  }

  /// Fails all commands at shutdown, including those that wait for a store.
  mutating func failCommands(_ error: CommandError, _ effects: inout Effects) {
    fail(error, &effects)
    modes.failPending(error, &effects)
  }

  private mutating func finish(_ result: Result<Report, CommandError>, _ effects: inout Effects) {
    if let id = entries.removeFirst().commandID { effects.append(.complete(id, result)) }
  }

  // MARK: The VESC

  /// Activates the selected mode and reads the drivetrain, because the VESC has begun to respond.
  mutating func vescBeganToRespond(_ publisher: inout VESCPublisher, _ effects: inout Effects) {
    modes.deactivate()
    modes.clearProblem()
    entries.removeAll { if case .mode(let change) = $0 { change.commandID == nil && change.isReading } else { false } }
    // A mode change in progress is completed first.
    let isBusy = if case .mode(let change)? = entries.first { !change.isReading } else { false }
    entries.insert(.mode(VESCModeChange(modes.selected ?? "", commandID: nil)), at: isBusy ? 1 : 0)
    modes.publish(&publisher, &effects)
  }

  mutating func setVESCCount(_ count: Int) { vescs = count }

  mutating func vescStoppedResponding(_ reason: String, _ effects: inout Effects) {
    fail(.notConnected(reason), &effects)
    modes.deactivate()
    vescs = nil
  }

  mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    vescStoppedResponding(reason, &effects)
    modes.clearProblem()
  }

  func publishMode(_ publisher: inout VESCPublisher, _ effects: inout Effects) { modes.publish(&publisher, &effects) }

  // MARK: Requests

  /// Whether the current command has a request to send.
  var hasRequest: Bool {
    switch entries.first {
    case .mode(let change): change.request(needsCount: false) != nil
    case .scan: true
    case nil: false
    }
  }

  /// Returns the next request of the current command. `lacksSetupValues`: the firmware cannot report the number of VESCs.
  mutating func nextRequest(lacksSetupValues: Bool, at now: Instant) -> VESCCommand? {
    switch entries.first {
    case .mode(let change): return change.request(needsCount: vescs == nil && !lacksSetupValues)
    case .scan(var scan):
      if scan.commandID == nil {
        entries.removeFirst()
        return nil
      }
      scan.start(at: now)
      entries[0] = .scan(scan)
      return .pingCAN
    case nil: return nil
    }
  }

  /// The frame of a request that contains limits.
  func frame(_ command: VESCCommand) -> [UInt8]? {
    guard command == .setLimits, case .mode(let change)? = entries.first, let target = change.target else { return nil }
    // If only one of two motors had reduced limits, the board would veer to one side. So the VESC forwards the limits, as with VESC Tool.
    // With the option `can-id`, the limits are not forwarded.
    let isForwarded = canID == nil && vescs ?? 1 > 1
    return VESCCommand.setLimits.frame(target.command(isForwarded: isForwarded), canID: canID)
  }

  // MARK: Responses

  mutating func limitsReceived(_ board: VESCBoard, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard case .mode(var change)? = entries.first else { return }
    let drivetrain = configured.completed(by: board.drivetrain)
    let action = change.limitsReceived(board.limits, mode: modes[change.name], storedLimits: modes.storedLimits, drivetrain)
    perform(action, of: change, &publisher, &effects)
  }

  mutating func writeAcknowledged() {
    guard case .mode(var change)? = entries.first else { return }
    change.writeAcknowledged()
    entries[0] = .mode(change)
  }

  mutating func scanResultReceived(_ payload: ArraySlice<UInt8>, _ effects: inout Effects) {
    guard case .scan? = entries.first else { return }
    finish(.success(VESCScan.report(payload)), &effects)
  }

  /// Handles the timeout of a request, which may belong to the current command.
  mutating func timedOut(_ command: VESCCommand, lacksSetupValues: Bool, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    switch entries.first {
    case .mode(var change) where command == change.request(needsCount: vescs == nil && !lacksSetupValues):
      perform(change.timedOut(command, timeout: timeout), of: change, &publisher, &effects)
    case .scan where command == .pingCAN: finish(.failure(.timeout(milliseconds: Int(VESCScan.timeout / .millisecond))), &effects)
    case .mode, .scan, nil: break
    }
  }

  mutating func stored(_ key: String, _ failure: String?, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    let stored = modes.stored(key, failure, &effects)
    guard let stored, case .mode(var change)? = entries.first else { return }
    switch stored {
    case .limits: perform(change.limitsStored(failure), of: change, &publisher, &effects)
    case .mode(let error): if change.state == .storingMode { finish(error.map { .failure($0) } ?? .success(Report()), &effects) }
    }
  }

  /// Performs the next action of the first entry, a mode change.
  private mutating func perform(
    _ action: VESCModeChange.Action, of change: VESCModeChange, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    var change = change
    entries[0] = .mode(change)
    switch action {
    case .none: break
    case .completed: finish(.success(Report()), &effects)
    case .assumeOneVESC: vescs = 1
    case .storeLimits(let storedLimits):
      if storedLimits == modes.storedLimits { return perform(change.limitsStored(nil), of: change, &publisher, &effects) }
      modes.store(storedLimits, &effects)
    case .activated(let limits, let own):
      guard modes.setActive(change, limits, own: own, &publisher, &effects) else { return finish(.success(Report()), &effects) }
      change.activated()
      entries[0] = .mode(change)
    case .failed(let error):
      if change.commandID == nil, !change.name.isEmpty { modes.setProblem(change.name, error) }
      if change.hasWritten { modes.deactivate() }
      finish(.failure(error), &effects)
      modes.publish(&publisher, &effects)
    }
  }

  // MARK: Progress

  /// When the next progress report of a scan in flight is due.
  func progressDue(_ command: VESCCommand) -> Instant? {
    guard command == .pingCAN, case .scan(let scan)? = entries.first else { return nil }
    return scan.progressDue
  }

  mutating func reportProgress(at now: Instant, _ effects: inout Effects) {
    guard case .scan(var scan)? = entries.first else { return }
    scan.reportProgress(at: now, &effects)
    entries[0] = .scan(scan)
  }
}
