// The published values of a position device. Within one fix, gpsd may report some values earlier than others, so a value that is missing
// from a report is withdrawn only if it stays missing.

struct PositionPublisher: Sendable {
  /// When the published position expires; nil if none is published.
  private(set) var expiry: Instant?
  /// Why no position is published; nil if one is.
  private(set) var absence: String?
  private var receiver: String?
  /// When each value of the fix was last reported; nil if it was withdrawn.
  private var reported: [PositionProperty: Instant] = [:]
  private var lastThreeD: Instant?

  /// How long a value may be missing: the time of one fix at the usual rate, plus a margin.
  private static let hold: Nanoseconds = 2 * .second

  /// Publishes a position that expires at `until`.
  mutating func publish(_ fix: GPSDFix, until: Instant, at now: Instant, _ effects: inout Effects) {
    if absence != nil { (reported, lastThreeD) = ([:], nil) }
    let isNew = absence != nil || expiry == nil
    (expiry, absence) = (until, nil)
    if fix.mode == .threeD { lastThreeD = now }
    let isThreeD = lastThreeD.map { now &- $0 < Self.hold } == true
    effects.publish(PositionProperty.fix.rawValue, .string((isThreeD ? GPSDFix.Mode.threeD : .twoD).name))
    for property in PositionProperty.ofFix where property != .fix {
      let value: Value? = property == .fixTime ? fix.time.map { .string($0) } : fix[property].map { .float($0) }
      if let value {
        reported[property] = now
        effects.publish(property.rawValue, value)
      } else if let last = reported[property] {
        guard now &- last >= Self.hold else { continue }
        reported[property] = nil
        withdraw(property, isThreeD, &effects)
      } else if isNew {
        withdraw(property, isThreeD, &effects)
      }
    }
  }

  private func withdraw(_ property: PositionProperty, _ isThreeD: Bool, _ effects: inout Effects) {
    let needsThreeD = property == .altitude || property == .verticalAccuracy
    effects.withdraw(property.rawValue, needsThreeD && !isThreeD ? "the fix is 2d" : "not reported by the receiver")
  }

  /// Withdraws the position, because the receiver has no fix.
  mutating func publishNoFix(_ effects: inout Effects) {
    let reason = "no fix: the receiver needs a clear view of the sky, and up to several minutes"
    withdraw(PositionProperty.ofFix.filter { $0 != .fix }, reason, &effects)
    effects.publish(PositionProperty.fix.rawValue, .string(GPSDFix.Mode.none.name))
  }

  /// Withdraws the position.
  mutating func withdraw(_ reason: String, _ effects: inout Effects) { withdraw(PositionProperty.ofFix, reason, &effects) }

  private mutating func withdraw(_ properties: [PositionProperty], _ reason: String, _ effects: inout Effects) {
    expiry = nil
    guard absence != reason else { return }
    absence = reason
    for property in properties { effects.withdraw(property.rawValue, reason) }
  }

  /// Withdraws the position, the satellites and the receiver.
  mutating func withdrawAll(_ reason: String, _ effects: inout Effects) {
    withdraw(reason, &effects)
    receiver = nil
    for property in [PositionProperty.satellitesUsed, .satellitesSeen, .receiver] { effects.withdraw(property.rawValue, reason) }
  }

  mutating func publish(_ sky: GPSDSky, _ effects: inout Effects) {
    if let used = sky.used { effects.publish(PositionProperty.satellitesUsed.rawValue, .int(used)) }
    if let seen = sky.seen { effects.publish(PositionProperty.satellitesSeen.rawValue, .int(seen)) }
  }

  mutating func publish(receiver path: String, _ effects: inout Effects) {
    guard receiver != path, !path.isEmpty else { return }
    if let receiver { withdrawAll("the receiver \(receiver) is no longer used", &effects) }
    receiver = path
    effects.publish(PositionProperty.receiver.rawValue, .string(path))
  }
}
