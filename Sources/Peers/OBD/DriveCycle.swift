// The repeating drive cycle of simulated cars, a pure function of the time since the start: all clients see the same values.
// Source: the textbook road-load equation (inertia, rolling and air resistance); published vehicle data.

/// The drive cycle of one car.
struct DriveCycle: Sendable {
  /// The vehicle data that determine road load and battery.
  struct Vehicle: Sendable {
    var mass: Double  // kg
    var rollingResistance: Double  // N
    var drag: Double  // N per (m/s)²
    var motorRPMPerKmh: Double
    var cells: Double  // in series
    var packResistance: Double  // Ω
    var capacity: Double  // Ah
    var initialStateOfCharge: Double  // %
  }

  /// All changing values at one instant.
  struct Sample: Sendable {
    var seconds: Double
    var speed: Double  // km/h, negative in reverse
    var motorSpeed: Double  // rpm, of the same sign
    var current: Double  // A, negative into the battery
    var voltage: Double  // V at the terminals
    var stateOfCharge: Double  // %
    var chargeOut: Double  // Ah drawn from the battery since the start
    var chargeIn: Double  // Ah regenerated since the start
    var energyOut: Double  // kWh
    var energyIn: Double
    var batteryTemperature: Double  // °C
    var coolantTemperature: Double  // °C
    var distance: Double  // km since the start, forward and backward
    var outdoorTemperature = 11.5  // °C
    var isInDrive = false  // whether drive is engaged while the car is stationary
  }

  /// The duration in s and the final speed in km/h of each leg.
  private static let legs: [(seconds: Double, speed: Double)] = [
    (1, 0), (9, 50), (20, 50), (8, 0), (5, 0), (14, 80), (25, 80), (9, 30), (10, 30), (18, 110),
    (35, 110), (12, 60), (12, 60), (13, 0), (4, 0), (3, -6), (4, -6), (2, 0), (6, 0),
  ]
  static let period = legs.reduce(0) { $0 + $1.seconds }
  private static let stepsPerSecond = 10.0

  let vehicle: Vehicle
  private let nominalVoltage: Double
  /// The charge in As drawn from the battery since the start of a cycle, one element per 0.1 s.
  private var drawnCharge: [Double] = [0]
  /// The charge in As returned to the battery since the start of a cycle, one element per 0.1 s.
  private var regeneratedCharge: [Double] = [0]
  /// The distance in km since the start of a cycle, one element per 0.1 s.
  private static let distances = runningTotal { abs(motion($0).speed) / 3600 }

  init(_ vehicle: Vehicle) {
    self.vehicle = vehicle
    nominalVoltage = vehicle.cells * DriveCycle.cellVoltage(vehicle.initialStateOfCharge)
    drawnCharge = DriveCycle.runningTotal { max(0, current($0)) }
    regeneratedCharge = DriveCycle.runningTotal { max(0, -current($0)) }
  }

  /// The values at this time since the start in s.
  func sample(_ seconds: Double) -> Sample {
    let seconds = max(0, seconds)
    let current = self.current(seconds)
    let chargeOut = DriveCycle.total(drawnCharge, seconds) / 3600
    let chargeIn = DriveCycle.total(regeneratedCharge, seconds) / 3600
    // The car is never charged: after many cycles its battery stays at 5 %.
    let stateOfCharge = max(5, vehicle.initialStateOfCharge - (chargeOut - chargeIn) / vehicle.capacity * 100)
    let speed = DriveCycle.motion(seconds).speed
    return Sample(
      seconds: seconds, speed: speed, motorSpeed: speed * vehicle.motorRPMPerKmh, current: current,
      voltage: vehicle.cells * DriveCycle.cellVoltage(stateOfCharge) - current * vehicle.packResistance, stateOfCharge: stateOfCharge,
      chargeOut: chargeOut, chargeIn: chargeIn,
      energyOut: chargeOut * nominalVoltage / 1000, energyIn: chargeIn * nominalVoltage / 1000,
      batteryTemperature: 18 + 9 * seconds / (seconds + 1800), coolantTemperature: 21 + 24 * seconds / (seconds + 600),
      distance: DriveCycle.distance(seconds))
  }

  /// Open-circuit voltage of a cell at a state of charge in %.
  private static func cellVoltage(_ stateOfCharge: Double) -> Double { 3.45 + 0.005 * stateOfCharge }

  /// Speed in km/h and acceleration in m/s². Each leg is a smooth step, so that the acceleration has no jumps.
  static func motion(_ seconds: Double) -> (speed: Double, acceleration: Double) {
    var rest = seconds.truncatingRemainder(dividingBy: DriveCycle.period)
    var from = 0.0
    for leg in DriveCycle.legs {
      if rest < leg.seconds {
        let part = rest / leg.seconds
        let change = leg.speed - from
        return (from + change * part * part * (3 - 2 * part), change / 3.6 * 6 * part * (1 - part) / leg.seconds)
      }
      rest -= leg.seconds
      from = leg.speed
    }
    return (0, 0)
  }

  /// Battery current in A: road load with drivetrain losses, and auxiliary consumers.
  private func current(_ seconds: Double) -> Double {
    let motion = DriveCycle.motion(seconds)
    let speed = motion.speed / 3.6
    let load = vehicle.mass * motion.acceleration * speed + (vehicle.rollingResistance + vehicle.drag * speed * speed) * abs(speed)
    // The car uses regenerative braking only while driving forward.
    let power = load > 0 ? load / 0.9 : speed > 0 ? load * 0.75 : 0
    return (power + 600) / nominalVoltage
  }

  /// The running total of a rate (per s) over one cycle, in steps of 0.1 s.
  static func runningTotal(_ rate: (Double) -> Double) -> [Double] {
    var table = [0.0]
    for step in 0..<Int(period * stepsPerSecond) {
      table.append((table.last ?? 0) + rate((Double(step) + 0.5) / stepsPerSecond) / stepsPerSecond)
    }
    return table
  }

  /// Kilometres since the start.
  static func distance(_ seconds: Double) -> Double { total(distances, seconds) }

  /// A running total at any time since the start, interpolated between the steps of its table.
  static func total(_ table: [Double], _ seconds: Double) -> Double {
    let cycles = (seconds / DriveCycle.period).rounded(.down)
    let steps = (seconds - cycles * DriveCycle.period) * DriveCycle.stepsPerSecond
    let index = min(max(0, Int(steps)), table.count - 2)
    return cycles * (table.last ?? 0) + table[index] + (table[index + 1] - table[index]) * (steps - Double(index))
  }
}
