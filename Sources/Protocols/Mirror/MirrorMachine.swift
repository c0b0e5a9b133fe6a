// The `mirror` machine: sends a smart mirror the name of the person, the brightness of its light, and periodically the health and weather
// values of other devices. The mirror acknowledges writes, but sends nothing. At most one write is in flight, the name is sent before any
// value, and after a reconnect the session starts over: greeting, name, light, updates.
// Source: ISM-App's BLE.swift (order, 2 s, 60 s), ISM-Embedded's main.cpp (effects of a name and a value, lost messages).

/// Drives the ESP32 of a smart mirror.
public struct MirrorMachine: Machine {
  /// The state of the machine. Each case carries only the data that is valid in it.
  enum State {
    /// No link, for this reason.
    case down(String)
    case up(MirrorSession)
    /// The link is being closed.
    case shuttingDown(MirrorShutdown)
  }

  /// A command whose messages the mirror has not acknowledged yet.
  struct PendingCommand {
    /// When the command times out.
    let until: Instant
    /// The reply on success.
    let report: Report
    /// Whether the setting is stored. If so, and the mirror does not acknowledge it in time, it is sent later.
    let isStored: Bool
    /// The name that the mirror must acknowledge to complete the command; nil if it must acknowledge all messages of the command.
    let name: String?
  }

  public let schema: Schema
  let settings: MirrorSettings
  var state = State.down("the link is not up yet")
  var persisted: PersistedSettings
  var acknowledgements = MirrorAcknowledgements()
  /// The known values of other devices.
  var known: [MirrorMetric: Value] = [:]
  /// Why a metric has no value that can be sent.
  var missing: [MirrorMetric: String] = [:]
  /// When an observed value became absent.
  var absentSince: [MirrorMetric: Instant] = [:]
  /// The wall-clock time, as of the last update.
  var clock = DayClock(WallTime(microseconds: 0), at: 0)
  /// The estimate of what the display may still be reading.
  var readWindow = DisplayReadWindow()
  var pendingCommands: [CommandID: PendingCommand] = [:]
  /// When the next update is due; nil while nothing is sent.
  var nextUpdate: Instant?
  var lastSendID: SendID = 0
  /// The current fault, until a connection is stable.
  var fault: String?
  /// When the link came up.
  var connectedAt: Instant = 0
  /// The number of consecutive connections that were lost within `stableAfter`.
  var earlyDisconnects = 0

  /// Creates a machine; throws for an invalid option.
  public init(_ setup: Setup) throws(OptionError) {
    settings = try MirrorSettings(setup)
    schema = Schema(properties: MirrorProperty.properties, actions: [Self.sendNow])
    persisted = PersistedSettings(schema.properties)
  }

  /// The name that the mirror greets: the name that a client set, or else the configured name.
  var username: String? { persisted[.username]?.text ?? settings.username }

  public var nextWake: Instant? {
    var due = pendingCommands.values.map(\.until)
    switch state {
    case .down: break
    case .up(let session):
      if let moment = session.nextWake(for: username) { due.append(moment) }
      if isUnstable, session.isAcknowledged { due.append(connectedAt &+ Self.stableAfter) }
      if let nextUpdate { due.append(nextUpdate) }
    case .shuttingDown(let shutdown): due.append(shutdown.nextWake)
    }
    return due.min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall): start(restored, wall, at: now, &effects)
    case .time(let wall): timeReceived(wall, at: now)
    case .linkChanged(.main, .up): linkUp(at: now)
    case .linkChanged(.main, .down(let reason)): linkDown(reason, at: now, &effects)
    case .sent(let id, let failure): sent(id, failure, at: now, &effects)
    case .stored(let key, let failure): stored(key, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .observed(let reference, let content): observed(reference, content, at: now, &effects)
    case .cancelled(let id): cancel(id)
    case .stopping: stop(at: now, &effects)
    case .wake, .linkChanged, .received, .response, .rows, .leaseBegan, .leaseEnded: break
    }
    handleTimeouts(at: now, &effects)
    advance(at: now, &effects)
    clearFaultIfStable(at: now)
    publishState(&effects)
  }

  // MARK: Start and status

  private mutating func start(_ restored: [String: [UInt8]], _ wall: WallTime, at now: Instant, _ effects: inout Effects) {
    let damaged = persisted.restore(restored) { property, value in
      property != MirrorProperty.username.rawValue || MirrorMessage.refusal(name: value.text) == nil
    }
    acknowledgements.restore(restored)
    clock = DayClock(wall, at: now)
    readWindow = DisplayReadWindow(name: acknowledgements.names.last, at: now)
    if !damaged.isEmpty { effects.append(.event(name: "state-corrupt", text: damagedSettingsMessage(damaged))) }
    publishStored(&effects)
    for property in MirrorProperty.sent { effects.withdraw(property, "not acknowledged by the mirror since the device was started") }
    for metric in MirrorMetric.allCases {
      if let reference = settings.sources[metric] { effects.append(.observe(reference: reference)) }
    }
  }

  mutating func publishStored(_ effects: inout Effects) {
    if let led = persisted[.led] {
      effects.publish(.led, led)
    } else {
      effects.withdraw(.led, "not set, and the mirror does not report it: vehiclectl set \(settings.device).led 50")
    }
    if let username {
      effects.publish(.username, .string(username))
    } else {
      effects.withdraw(.username, "not set: vehiclectl set \(settings.device).username NAME")
    }
    effects.publish(.interval, .int(interval))
    for property in MirrorProperty.switches { effects.publish(property, .bool(isOn(property))) }
  }

  /// The interval between updates in seconds.
  var interval: Int { if case .int(let seconds)? = persisted[.interval] { seconds } else { settings.interval } }

  func isOn(_ property: MirrorProperty) -> Bool { persisted[property] == .bool(true) }

  var noNameMessage: String { "no name is set: vehiclectl set \(settings.device).username NAME" }

  /// Publishes the device's state, and its fault.
  private func publishState(_ effects: inout Effects) {
    let stateName: String
    if username == nil {
      stateName = "needs-username"
    } else {
      switch state {
      case .down: stateName = "waiting"
      case .up where fault != nil: stateName = "silent"
      case .up: stateName = nextUpdate == nil ? "connected" : "sending"
      case .shuttingDown: stateName = "shutting-down"
      }
    }
    effects.append(.status(stateName))
    effects.append(.fault(username == nil ? noNameMessage : fault))
  }
}
