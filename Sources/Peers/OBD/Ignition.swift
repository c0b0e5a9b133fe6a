// When the simulated car's key is turned, what drives and what sleeps in each position, and the 12 V battery that tells of it. It is a
// pure function of the time. Facts: a resting lead battery has 12.4 to 12.7 V, a charged one 14.2 V and more; gateways keep the bus
// awake for a while after the key is out.

import Protocols

/// The key of a car over time.
public struct Ignition: Sendable {
  /// Where it stands.
  public enum Position: String, Sendable, CaseIterable {
    /// Nobody answers, and after a while the bus is dead.
    case off
    /// Everybody answers; the car stands, and an engine does not run.
    case on
    /// The car drives.
    case run
  }

  /// It is turned.
  public struct Turn: Sendable, Equatable {
    public var position: Position
    /// Since the start.
    public var time: Nanoseconds

    /// Turned to this position then.
    public init(_ position: Position, at time: Nanoseconds) { (self.position, self.time) = (position, time) }

    /// Reads `off@30`, `on@0`, `run@45`.
    public init(_ text: String) throws(ValueError) {
      let parts = text.split(separator: "@", omittingEmptySubsequences: false)
      let names = Position.allCases.map(\.rawValue)
      guard parts.count == 2, let position = Position(rawValue: String(parts[0])), let seconds = Int64(parts[1]),
        (0...604_800).contains(seconds)
      else {
        throw ValueError("\"\(text)\" turns no key: write one of \(names.joined(separator: ", ")), @, and seconds since the start, off@30")
      }
      self.init(position, at: seconds * .second)
    }
  }

  /// What the bus is like for somebody who asks.
  enum BusState { case awake, silent, dead }

  /// How long the bus stays alive when nobody answers any more.
  public static let lingering: Nanoseconds = 10 * .second
  private static let settling: Nanoseconds = 8 * .second
  private static let resting = 12_400

  /// When it all began.
  public let origin: Instant
  private let turns: [Turn]

  /// A key that is in `run` from the start, and turned as told.
  public init(origin: Instant = 0, _ turns: [Turn] = []) {
    self.origin = origin
    self.turns = [Turn(.run, at: 0)] + turns.sorted { $0.time < $1.time }
  }

  private func elapsed(at now: Instant) -> Nanoseconds { max(0, now &- origin) }

  public func position(at now: Instant) -> Position {
    let elapsed = elapsed(at: now)
    return turns.last { $0.time <= elapsed }?.position ?? .run
  }

  /// How long the car has been in one of these positions without a break; nil: it is not.
  func time(in positions: Set<Position>, at now: Instant) -> Nanoseconds? {
    let elapsed = elapsed(at: now)
    var since: Nanoseconds?
    for turn in turns where turn.time <= elapsed { since = positions.contains(turn.position) ? since ?? turn.time : nil }
    return since.map { elapsed - $0 }
  }

  func busState(at now: Instant) -> BusState {
    guard let time = time(in: [.off], at: now) else { return .awake }
    return time < Ignition.lingering ? .silent : .dead
  }

  /// How far the journey is. A car that is stopped stands at once; when it goes on, a new round begins.
  func drivingTime(at now: Instant) -> Nanoseconds {
    let (elapsed, round) = (elapsed(at: now), Nanoseconds(DriveCycle.period) * .second)
    if turns.count == 1 { return elapsed }
    var driven: Nanoseconds = 0
    for (turn, next) in zip(turns, turns.dropFirst().map(\.time) + [.max]) where turn.position == .run && turn.time <= elapsed {
      driven += min(elapsed, next) - turn.time
      // `run` after `run` is no stop.
      if next <= elapsed, turns.last(where: { $0.time <= next })?.position != .run { driven = (driven + round - 1) / round * round }
    }
    return driven
  }

  /// The 12 V battery in mV: charged in these positions, else on its way down to rest, and then 0.1 V less every hour.
  func supply(_ charged: Int, in positions: Set<Position>, at now: Instant) -> Int {
    guard turns.count > 1, let time = time(in: Set(Position.allCases).subtracting(positions), at: now) else { return charged }
    if time < elapsed(at: now), time < Ignition.settling {
      return charged - Int(Nanoseconds(charged - Ignition.resting) * (time / .millisecond) / (Ignition.settling / .millisecond))
    }
    return max(11_500, Ignition.resting - Int(time / (36 * .second)))
  }
}
