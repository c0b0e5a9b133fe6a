// What the engine of a simulated petrol car does on the round that DriveCycle drives: a pure function of the seconds since the start.
// It knows no wire format. Facts: road load as in DriveCycle; a turbocharged engine of 1.6 l, 14.7 kg of air burn 1 kg of petrol, which
// has 34 MJ and 745 g a litre; a third of it reaches the wheels; warm it is after some three minutes.

/// An engine on its round.
struct PetrolDrive: Sendable {
  /// Everything that moves, at one instant.
  struct Moment: Sendable {
    var seconds: Double
    var isRunning: Bool
    var speed: Double  // km/h
    var engineSpeed: Double  // rpm
    var power: Double  // kW at the wheels; braking is negative
    var load: Double  // % of what fits into the cylinders without the turbocharger
    var airFlow: Double  // g/s
    var fuelRate: Double  // l/h
    var throttle: Double  // %
    var pedal: Double  // %
    var distance: Double  // km since the start
    var fuel: Double  // l since the start
    /// No fuel is injected: the wheels turn the engine.
    var overruns: Bool { isRunning && fuelRate == 0 }

    /// From cold to warm, as a part of the way, for something that takes so many seconds.
    func warmth(_ time: Double) -> Double { seconds / (seconds + time) }
  }

  static let idle = 780.0
  /// rpm per km/h in each gear, and up to which speed it is used.
  private static let gears: [(upTo: Double, turns: Double)] = [(22, 118), (42, 68), (66, 45), (90, 34), (105, 27), (.infinity, 23)]
  private static let spent = DriveCycle.table { fuelRate($0) / 3600 }

  static func moment(_ seconds: Double, isRunning: Bool) -> Moment {
    let seconds = max(0, seconds)
    let motion = DriveCycle.motion(seconds)
    let engineSpeed = isRunning ? self.engineSpeed(motion.speed) : 0
    let fuelRate = isRunning ? self.fuelRate(seconds) : 0
    let burnt = fuelRate * 745 / 3600 * 14.7
    let airFlow = isRunning ? (fuelRate > 0 ? burnt : engineSpeed * 0.0016) : 0
    let load = isRunning ? airFlow / (engineSpeed / 120 * 1.6 * 1.184) * 100 : 0
    let demand = min(100, max(0, power(motion)) * 2.2)
    return Moment(
      seconds: seconds, isRunning: isRunning, speed: isRunning ? motion.speed : 0, engineSpeed: engineSpeed, power: power(motion),
      load: load,
      airFlow: airFlow, fuelRate: fuelRate, throttle: isRunning ? min(96, 11 + load * 0.45) : 14,
      pedal: 15 + demand * 0.7, distance: DriveCycle.distance(seconds), fuel: DriveCycle.total(spent, seconds))
  }

  /// The wheels turn the engine in gear; below idle the clutch slips.
  private static func engineSpeed(_ speed: Double) -> Double {
    let gear = gears.first { abs(speed) <= $0.upTo } ?? (0, 23)
    return max(idle + 12 * (abs(speed) > 0 ? 1 : 0), abs(speed) * gear.turns)
  }

  /// Road load in kW.
  private static func power(_ motion: (speed: Double, acceleration: Double)) -> Double {
    let speed = motion.speed / 3.6
    return (1380 * motion.acceleration * speed + (140 + 0.39 * speed * speed) * abs(speed)) / 1000
  }

  /// Litres an hour: what idling takes at that speed, and what the wheels want; nothing while they push.
  private static func fuelRate(_ seconds: Double) -> Double {
    let motion = DriveCycle.motion(seconds)
    let (power, engineSpeed) = (power(motion), engineSpeed(motion.speed))
    if power < -0.5, engineSpeed > 1100 { return 0 }
    return 0.72 * engineSpeed / idle + max(0, power) * 3.6 / (0.33 * 34)
  }
}
