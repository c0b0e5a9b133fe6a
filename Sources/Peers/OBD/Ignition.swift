// The ignition of a simulated car over time, with its effects on the bus and the 12 V battery. Pure functions of time.
// A lead-acid battery has 12.4 to 12.7 V at rest and 14.2 V and more while charging. Gateways keep the bus awake for a while after
// ignition off.

import Protocols

/// The positions of the ignition key over time.
public struct Ignition: Sendable {
  /// A position of the key.
  public enum Position: String, Sendable, CaseIterable {
    /// No ECU responds, and after `busHoldTime` the bus is down.
    case off
    /// All ECUs respond; the car is stationary with its engine off.
    case on
    /// The car drives.
    case run
  }

  /// A turn of the key.
  public struct Turn: Sendable, Equatable {
    public var position: Position
    /// The time since the start.
    public var time: Nanoseconds

    /// Creates a turn to this position.
    public init(_ position: Position, at time: Nanoseconds) { (self.position, self.time) = (position, time) }

    /// Parses `off@30`, `on@0` or `run@45`.
    public init(_ text: String) throws(ValueError) {
      let parts = text.split(separator: "@", omittingEmptySubsequences: false)
      let names = Position.allCases.map(\.rawValue)
      guard parts.count == 2, let position = Position(rawValue: String(parts[0])), let seconds = Int64(parts[1]),
        (0...604_800).contains(seconds)
      else {
        throw ValueError(
          "invalid key position \"\(text)\": write \(names.joined(separator: ", ")), then @ and the seconds since the start, for example off@30"
        )
      }
      self.init(position, at: seconds * .second)
    }
  }

  /// The state of the bus as a tester sees it.
  public enum BusState: Sendable {
    case awake
    /// Frames are acknowledged, but no ECU responds.
    case silent
    /// Frames are not acknowledged.
    case dead
  }

  /// The time that the bus stays up after ignition off.
  public static let busHoldTime: Nanoseconds = 10 * .second
  /// The time in which the 12 V battery falls from its charging voltage to its resting voltage.
  private static let settlingTime: Nanoseconds = 8 * .second
  /// The voltage of the 12 V battery at rest, in mV.
  private static let restingVoltage = 12_400

  /// The start of the simulation.
  public let origin: Instant
  private let turns: [Turn]

  /// Creates an ignition that is in `run` from the start, with later turns.
  public init(origin: Instant = 0, _ turns: [Turn] = []) {
    self.origin = origin
    self.turns = [Turn(.run, at: 0)] + turns.sorted { $0.time < $1.time }
  }

  private func elapsed(at now: Instant) -> Nanoseconds { max(0, now &- origin) }

  public func position(at now: Instant) -> Position {
    let elapsed = elapsed(at: now)
    return turns.last { $0.time <= elapsed }?.position ?? .run
  }

  /// Returns how long the key has been in one of these positions without interruption, or nil if it is in another one.
  func duration(in positions: Set<Position>, at now: Instant) -> Nanoseconds? {
    let elapsed = elapsed(at: now)
    var since: Nanoseconds?
    for turn in turns where turn.time <= elapsed { since = positions.contains(turn.position) ? since ?? turn.time : nil }
    return since.map { elapsed - $0 }
  }

  func busState(at now: Instant) -> BusState {
    guard let time = duration(in: [.off], at: now) else { return .awake }
    return time < Ignition.busHoldTime ? .silent : .dead
  }

  /// The driving time since the start. Each stop is treated as the end of its drive cycle, so the next drive starts a new cycle.
  func drivingTime(at now: Instant) -> Nanoseconds {
    let (elapsed, cycle) = (elapsed(at: now), Nanoseconds(DriveCycle.period) * .second)
    if turns.count == 1 { return elapsed }
    var driven: Nanoseconds = 0
    for (turn, next) in zip(turns, turns.dropFirst().map(\.time) + [.max]) where turn.position == .run && turn.time <= elapsed {
      driven += min(elapsed, next) - turn.time
      // A turn from `run` to `run` is not a stop.
      if next <= elapsed, turns.last(where: { $0.time <= next })?.position != .run { driven = (driven + cycle - 1) / cycle * cycle }
    }
    return driven
  }

  /// Returns the voltage of the 12 V battery in mV. It is `charging` while the key is in one of these positions. In other positions, it
  /// falls to the resting voltage, and then by 0.1 V per hour.
  func supply(_ charging: Int, in positions: Set<Position>, at now: Instant) -> Int {
    guard turns.count > 1, let time = duration(in: Set(Position.allCases).subtracting(positions), at: now) else { return charging }
    if time < elapsed(at: now), time < Ignition.settlingTime {
      return charging
        - Int(Nanoseconds(charging - Ignition.restingVoltage) * (time / .millisecond) / (Ignition.settlingTime / .millisecond))
    }
    return max(11_500, Ignition.restingVoltage - Int(time / (36 * .second)))
  }
}
