// The rules that delimit periods. Times are in microseconds.

/// The configurable rules, with their defaults.
public struct PeriodRules: Sendable, Equatable {
  /// A pause up to this length is part of a trip.
  public var tripPause = Int64.minutes(5)
  /// A trip ends if no data arrives for this time, unless the odometer shows later that it continued.
  public var dataTimeout = Int64.minutes(15)
  /// A stop of this length ends a trip of a vehicle that reports neither gear nor ignition.
  public var idleTimeout = Int64.minutes(15)
  /// How long the gear must be in park to count as the end of a trip.
  public var parkTime = Int64.seconds(60)
  /// The speed at which a vehicle counts as moving, in km/h.
  public var movingSpeed = 3.0
  /// How long it must move for a trip to start.
  public var movingTime = Int64.seconds(2)
  /// Shorter trips are dropped, in km.
  public var minTripDistance = 0.05
  /// A stop of this length is listed as a pause.
  public var minPause = Int64.seconds(60)
  /// A parked period of this length ends a journey.
  public var journeyBreak = Int64.minutes(120)
  /// A pause up to this length is part of a charge; a longer one only while a plug is reported.
  public var chargePause = Int64.minutes(30)
  /// The battery current in A, negative into the battery, at or below which the vehicle counts as charging, if it does not report this.
  public var chargingCurrentThreshold = -1.0
  /// How long the vehicle must be stationary for such a current to count as charging rather than regeneration.
  public var chargeStationaryTime = Int64.seconds(60)
  /// The volume of the fuel tank in litres, to compute the consumption from its level if nothing better is reported.
  public var tankVolume: Double?
  /// How often an open period is reported.
  public var updateInterval = Int64.seconds(10)

  public init() {}
}

/// Limits that are not configurable rules.
enum Limits {
  /// A value is valid for this time, and integrals bridge it; vehicled repeats unchanged values every second.
  static let sampleAge = Int64.seconds(15)
  /// After this time without values from the vehicle, it may have been used in the meantime.
  static let gap = Int64.seconds(60)
  /// A time step beyond this is a wrong clock, not a parked period.
  static let clockStep = Int64.minutes(400 * 24 * 60)
  /// A vehicle that was driven through a gap had at least this mean speed, in km/h; otherwise it was also parked.
  static let minGapSpeed = 10.0
  /// A derived charge is reported if it lasts this time.
  static let chargeConfirmation = Int64.seconds(10)
  /// A rise of the state of charge in a gap that shows an unrecorded charge, and one that shows that a charge continued, in %. The state of
  /// charge of a longboard rises by a few percent when it rests.
  static let unrecordedChargeRise = 10.0
  static let continuedChargeRise = 0.5
  /// AC chargers in cars have at most 22 kW.
  static let maxACPower = 25.0
  /// At most this many pauses are listed for a period.
  static let pauses = 256
}
