// The rules that delimit periods. Times are in microseconds.

/// The configurable rules, with their defaults.
public struct PeriodRules: Sendable, Equatable {
  /// A pause up to this length is part of a trip.
  public var tripPause = Int64.minutes(5)
  /// A trip ends if no data arrives for this long, unless the odometer later shows that it continued.
  public var dataTimeout = Int64.minutes(15)
  /// A stop of this length ends a trip of a vehicle that reports neither gear nor ignition.
  public var idleTimeout = Int64.minutes(15)
  /// How long the gear must be in park to count as the end of a trip.
  public var parkTime = Int64.seconds(60)
  /// The speed in km/h from which a vehicle counts as moving.
  public var movingSpeed = 3.0
  /// How long the vehicle must move for a trip to start.
  public var movingTime = Int64.seconds(2)
  /// The minimum distance of a trip in km; shorter trips are dropped.
  public var minTripDistance = 0.05
  /// A stop of at least this length is listed as a pause.
  public var minPause = Int64.seconds(60)
  /// A parked period longer than this ends a journey.
  public var journeyBreak = Int64.minutes(120)
  /// A pause up to this length is part of a charge; a longer one only while a plug is reported.
  public var chargePause = Int64.minutes(30)
  /// The battery current in A at or below which a stationary vehicle without a charging status counts as charging.
  public var chargingCurrentThreshold = -1.0
  /// How long the vehicle must be stationary for such a current to count as charging rather than regeneration.
  public var chargeStationaryTime = Int64.seconds(60)
  /// The volume of the fuel tank in litres, used to compute consumption from the fuel level if the vehicle reports no more accurate
  /// quantity.
  public var tankVolume: Double?
  /// How often an open period is reported.
  public var updateInterval = Int64.seconds(10)

  public init() {}
}

/// Limits that are not configurable rules.
enum Limits {
  /// How long a value is valid; integrals bridge this time. vehicled repeats unchanged values every second.
  static let sampleAge = Int64.seconds(15)
  /// Currents in A and voltages in V beyond these are invalid.
  static let current = -3300.0...3300
  static let voltage = 0.0...1500
  /// Speeds in km/h beyond this are invalid.
  static let speed = 500.0
  /// Below this speed in rpm, a motor counts as stopped.
  static let motorSpeed = 30.0
  /// After this long without values from the vehicle, it may have been used in the meantime.
  static let gap = Int64.seconds(60)
  /// A larger time step indicates a wrong clock, not a parked period.
  static let clockStep = Int64.minutes(400 * 24 * 60)
  /// The mean speed in km/h from which a vehicle was driven throughout a gap; below it, the vehicle was also parked.
  static let minGapSpeed = 10.0
  /// How long a derived charge must last to be reported.
  static let chargeConfirmation = Int64.seconds(10)
  /// The rise of the state of charge during a gap, in %, that shows an unrecorded charge. The state of charge of a longboard rises by a few
  /// percent at rest.
  static let unrecordedChargeRise = 10.0
  /// The rise of the state of charge during a gap, in %, that shows that a charge continued.
  static let continuedChargeRise = 0.5
  /// AC chargers in cars have at most 22 kW.
  static let maxACPower = 25.0
  /// At most this many pauses are listed for a period.
  static let pauses = 256
}
