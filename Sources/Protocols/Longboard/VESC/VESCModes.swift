// The speed modes of a board: which mode is selected and stored, which mode is active, and the stored limits. A VESC keeps written limits
// only until it is switched off, so the selected mode is reactivated whenever the VESC starts to respond.

struct VESCModes: Sendable {
  private static let limitsKey = "limits"
  private static let modeKey = "mode"

  private let configured: [VESCMode]
  /// The stored limits.
  private(set) var storedLimits: VESCStoredLimits?
  /// The mode that was selected last, if any.
  private(set) var selected: String?
  /// The mode that the VESC was last verified to be in.
  private var active: String?
  /// Why the selected mode is not active.
  private(set) var problem: String?
  private var settings: PersistedSettings

  init(_ configured: [VESCMode], _ properties: [Property]) { (self.configured, settings) = (configured, PersistedSettings(properties)) }

  subscript(_ name: String) -> VESCMode? { configured.first { $0.name == name } }

  func contains(_ name: String) -> Bool { name == VESCMode.full || self[name] != nil }

  mutating func restore(_ values: [String: [UInt8]], _ effects: inout Effects) {
    storedLimits = values[Self.limitsKey].flatMap { VESCStoredLimits(stored: $0) }
    let unusable = settings.restore(values)
    // If a mode was removed from the configuration, the VESC gets its own limits back.
    selected = unusable.isEmpty ? settings[VESCProperty.mode.rawValue]?.text : VESCMode.full
    let damaged = unusable.filter { !Self.isModeName(values[$0] ?? []) }
    if !damaged.isEmpty { effects.append(.event(name: "state-corrupt", text: damagedSettingsMessage(damaged))) }
  }

  /// Whether these bytes can be the name of a mode, even of one that was removed from the configuration.
  private static func isModeName(_ bytes: [UInt8]) -> Bool {
    let letters = UInt8(ascii: "a")...UInt8(ascii: "z"), digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    return (1...32).contains(bytes.count) && bytes.allSatisfy { letters.contains($0) || digits.contains($0) || $0 == UInt8(ascii: "-") }
  }

  /// Selects a mode, which takes effect immediately, or when the VESC responds. `id`: a command that completes when the selection is
  /// stored.
  mutating func select(_ name: String, for id: CommandID?, _ effects: inout Effects) throws(CommandError) {
    try settings.set(VESCProperty.mode.rawValue, .string(name), for: id, &effects)
    selected = name
  }

  mutating func cancel(_ id: CommandID) { settings.cancel(id) }

  /// Fails the commands that wait for a store, at shutdown.
  mutating func failPending(_ error: CommandError, _ effects: inout Effects) { settings.failCommands(error, &effects) }

  /// Notes that no mode is known to be active, because the VESC's limits are unknown.
  mutating func deactivate() { active = nil }
  mutating func clearProblem() { problem = nil }

  /// Records why the selected mode could not be activated.
  mutating func setProblem(_ name: String, _ error: CommandError) {
    problem = "the mode \(name) is not active: \(error.message)"
  }

  /// Marks a mode as active. Returns whether its name must be stored, because a command has selected it.
  mutating func setActive(
    _ change: VESCModeChange, _ limits: VESCLimits, own: VESCLimits?, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) -> Bool {
    if change.name == VESCMode.full {
      store(nil, &effects)
    } else if let own {
      store(VESCStoredLimits(own: own, applied: limits), &effects)
    } else if let storedLimits, !storedLimits.applied.isClose(to: limits) {
      store(VESCStoredLimits(own: storedLimits.own, applied: limits), &effects)
    }
    problem = nil
    active = change.name
    publish(&publisher, &effects)
    if selected == change.name, change.commandID == nil { return false }
    return (try? select(change.name, for: nil, &effects)) != nil
  }

  /// Stores limits; nil removes them.
  mutating func store(_ storedLimits: VESCStoredLimits?, _ effects: inout Effects) {
    guard storedLimits != self.storedLimits else { return }
    self.storedLimits = storedLimits
    effects.append(.store(key: Self.limitsKey, storedLimits?.stored ?? []))
  }

  /// What was stored; `mode` carries the error if the mode could not be stored.
  enum Stored { case limits, mode(CommandError?) }

  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) -> Stored? {
    switch key {
    case Self.limitsKey: return .limits
    case Self.modeKey:
      let failure = failure.map { "cannot store the mode: \($0)" }
      let change = settings.stored(key, failure, &effects)
      effects.succeed(command: change?.id, Report(text: "pending: set when the VESC responds"))
      return settings.isStoring ? nil : .mode(failure.map { .refused(code: .notStored, $0) })
    default: return nil
    }
  }

  func publish(_ publisher: inout VESCPublisher, _ effects: inout Effects) {
    if let active { return publisher.publish(.mode, .string(active), &effects) }
    let message = selected.map { problem ?? "\($0) is pending: set when the VESC responds" } ?? "not set"
    publisher.withdraw(.mode, message, &effects)
  }
}

extension CommandError {
  /// The cause, as part of a message.
  fileprivate var message: String {
    switch self {
    case .notConnected(let message), .invalid(_, let message), .refused(_, let message): message
    case .timeout(let milliseconds): "no response within \(milliseconds) ms"
    }
  }
}
