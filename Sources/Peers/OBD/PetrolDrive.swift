// The engine of a simulated petrol car on the drive cycle of DriveCycle, a pure function of the time since the start: a turbocharged
// 1.6 l engine with an efficiency of 1/3; air-fuel ratio 14.7; petrol with 34 MJ/l and 745 g/l.

/// The engine on the drive cycle.
struct PetrolDrive: Sendable {
  /// All changing values at one instant.
  struct Sample: Sendable {
    var seconds: Double
    var isRunning: Bool
    var speed: Double  // km/h
    var engineSpeed: Double  // rpm
    var power: Double  // kW at the wheels; braking is negative
    var load: Double  // % of the cylinder charge without boost
    var airFlow: Double  // g/s
    var fuelRate: Double  // l/h
    var throttle: Double  // %
    var pedal: Double  // %
    var distance: Double  // km since the start
    var fuelUsed: Double  // l since the start
    /// Whether overrun fuel cut-off is active: the wheels turn the engine.
    var isFuelCut: Bool { isRunning && fuelRate == 0 }

    /// Warm-up from 0 (cold) to 1 (warm); it is 0.5 after `halfTime` in s.
    func warmth(_ halfTime: Double) -> Double { seconds / (seconds + halfTime) }
  }

  static let idle = 780.0
  /// The maximum speed in km/h and the rpm per km/h of each gear.
  private static let gears: [(maxSpeed: Double, rpmPerSpeed: Double)] = [
    (22, 118), (42, 68), (66, 45), (90, 34), (105, 27), (.infinity, 23),
  ]
  /// The fuel used in l since the start of a cycle, one element per 0.1 s.
  private static let fuelTotals = DriveCycle.runningTotal { fuelRate($0) / 3600 }

  /// The values at this driving time in s.
  static func sample(_ seconds: Double, isRunning: Bool) -> Sample {
    let seconds = max(0, seconds)
    let motion = DriveCycle.motion(seconds)
    let engineSpeed = isRunning ? self.engineSpeed(motion.speed) : 0
    let fuelRate = isRunning ? self.fuelRate(seconds) : 0
    let airForFuel = fuelRate * 745 / 3600 * 14.7
    let airFlow = isRunning ? (fuelRate > 0 ? airForFuel : engineSpeed * 0.0016) : 0
    let load = isRunning ? airFlow / (engineSpeed / 120 * 1.6 * 1.184) * 100 : 0
    let demand = min(100, max(0, power(motion)) * 2.2)
    return Sample(
      seconds: seconds, isRunning: isRunning, speed: isRunning ? motion.speed : 0, engineSpeed: engineSpeed, power: power(motion),
      load: load,
      airFlow: airFlow, fuelRate: fuelRate, throttle: isRunning ? min(96, 11 + load * 0.45) : 14,
      pedal: 15 + demand * 0.7, distance: DriveCycle.distance(seconds), fuelUsed: DriveCycle.total(fuelTotals, seconds))
  }

  /// The engine speed in rpm. It is at least the idle speed, because the clutch slips at low road speeds.
  private static func engineSpeed(_ speed: Double) -> Double {
    let gear = gears.first { abs(speed) <= $0.maxSpeed } ?? (0, 23)
    return max(idle + 12 * (abs(speed) > 0 ? 1 : 0), abs(speed) * gear.rpmPerSpeed)
  }

  /// Road load in kW.
  private static func power(_ motion: (speed: Double, acceleration: Double)) -> Double {
    let speed = motion.speed / 3.6
    return (1380 * motion.acceleration * speed + (140 + 0.39 * speed * speed) * abs(speed)) / 1000
  }

  /// Fuel rate in l/h: idle consumption and wheel power; 0 on overrun.
  private static func fuelRate(_ seconds: Double) -> Double {
    let motion = DriveCycle.motion(seconds)
    let (power, engineSpeed) = (power(motion), engineSpeed(motion.speed))
    if power < -0.5, engineSpeed > 1100 { return 0 }
    return 0.72 * engineSpeed / idle + max(0, power) * 3.6 / (0.33 * 34)
  }
}
