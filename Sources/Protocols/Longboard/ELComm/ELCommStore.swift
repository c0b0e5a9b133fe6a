// The stored state of a board: its lifetime distance, its name, and the detected dialect. The distance is published only after it is
// stored, so that a restart never decreases it. The distance is stored at most once per second.

/// The stored values of a board, and pending stores.
struct ELCommStore: Sendable {
  private static let distanceKey = "distance"
  private static let dialectKey = "dialect"
  private static let interval: Nanoseconds = .second
  private static let retry: Nanoseconds = 10 * .second

  /// The board counts hundredths of a mile in 16 bits; the maximum speed is assumed to be 60 mph.
  private var odometer = Odometer(maxCountsPerSecond: 60.0 / 36, wrap: 65_536)
  private var hasUnstoredDistance = false
  /// The distance that is being stored.
  private var storing: Int?
  private var notBefore: Instant = .min
  private let device: String
  private var settings: PersistedSettings
  private var dialect: ELCommDialect?

  /// `device`: the name of the device, for messages.
  init(_ properties: [Property], device: String) { (settings, self.device) = (PersistedSettings(properties), device) }

  var nextWake: Instant? { hasUnstoredDistance && storing == nil ? notBefore : nil }

  /// Restores stored values; returns the detected dialect.
  mutating func restore(_ values: [String: [UInt8]], _ effects: inout Effects) -> ELCommDialect? {
    if let bytes = values[Self.distanceKey] {
      if Odometer.isCorrupt(bytes) { effects.append(.event(name: "total-distance-lost", text: Odometer.damagedMessage)) }
      odometer = Odometer(stored: bytes, maxCountsPerSecond: 60.0 / 36, wrap: 65_536)
      publish(odometer.total, &effects)
    } else {
      effects.withdraw(ELCommProperty.totalDistance.rawValue, "the board has not reported its distance yet")
    }
    let damaged = settings.restore(values) { _, name in Self.isName(name.text) }
    if !damaged.isEmpty { effects.append(.event(name: "state-corrupt", text: damagedSettingsMessage(damaged))) }
    publishName(&effects)
    dialect = values[Self.dialectKey].flatMap { ELCommDialect(rawValue: String(decoding: $0, as: UTF8.self)) }
    return dialect
  }

  // MARK: Distance

  /// Handles a reading of the board's counter, in hundredths of a mile.
  mutating func read(distance counter: Int, at now: Instant) {
    if odometer.update(counter, at: now) { hasUnstoredDistance = true }
  }

  mutating func advance(at now: Instant, _ effects: inout Effects) {
    guard hasUnstoredDistance, storing == nil, now >= notBefore else { return }
    (hasUnstoredDistance, storing, notBefore) = (false, odometer.total, now &+ Self.interval)
    effects.append(.store(key: Self.distanceKey, odometer.stored))
  }

  /// Stores the distance immediately, because the daemon is shutting down.
  mutating func storeNow(_ effects: inout Effects) {
    notBefore = .min
    advance(at: .min, &effects)
  }

  mutating func stored(_ key: String, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    switch key {
    case Self.distanceKey:
      if failure != nil { (hasUnstoredDistance, notBefore) = (true, now &+ Self.retry) } else if let storing { publish(storing, &effects) }
      storing = nil
    default:
      guard let change = settings.stored(key, failure, &effects) else { return }
      publishName(&effects)
      effects.succeed(command: change.id)
    }
  }

  private func publish(_ total: Int, _ effects: inout Effects) {
    effects.publish(ELCommProperty.totalDistance.rawValue, .float(ELCommProperty.kilometres(total)))
  }

  // MARK: Name and dialect

  static func isName(_ text: String) -> Bool {
    (1...ELCommProperty.maxNameLength).contains(text.count) && text.utf8.count <= 8 * ELCommProperty.maxNameLength
      && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
  }

  /// Stores a name; an empty one removes the stored name. The command completes when the change is stored.
  mutating func set(name: String, for id: CommandID, _ effects: inout Effects) throws(CommandError) {
    guard name.isEmpty || Self.isName(name) else {
      throw .invalid(argument: "name", "a name must have at most \(ELCommProperty.maxNameLength) printable characters")
    }
    try settings.set(ELCommProperty.name.rawValue, .string(name), for: id, &effects)
  }

  /// Removes a command whose caller disconnected.
  mutating func cancel(_ id: CommandID) { settings.cancel(id) }

  private func publishName(_ effects: inout Effects) {
    if let name = settings[ELCommProperty.name.rawValue] {
      effects.publish(ELCommProperty.name.rawValue, name)
    } else {
      effects.withdraw(ELCommProperty.name.rawValue, "not set: vehiclectl set \(device).name NAME")
    }
  }

  mutating func store(dialect found: ELCommDialect, _ effects: inout Effects) {
    guard found != dialect else { return }
    dialect = found
    effects.append(.store(key: Self.dialectKey, Array(found.rawValue.utf8)))
  }
}
