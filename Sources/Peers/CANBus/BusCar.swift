// Vehicles whose messages the simulated bus carries: they are driven and charged in turns of three minutes, and their counters grow.

import Protocols

public enum BusCar: String, CaseIterable, Sendable {
  case teslaModel3 = "tesla-model-3"

  private var profile: CANProfile {
    switch self {
    case .teslaModel3: .teslaModel3
    }
  }

  public var title: String { profile.title }

  public var traffic: BusTraffic {
    let encoder = ProfileEncoder(profile)
    return BusTraffic(period: .second, count: nil, run: ElectricDrive.length) { block in
      encoder.frames(from: Nanoseconds(block) * .second, for: .second) { ElectricDrive.values(at: Double($0) / 1e9) }
    }
  }
}

/// An electric car that accelerates, cruises, brakes regeneratively, parks, and charges at a wallbox.
struct ElectricDrive {
  /// The length of a turn in seconds.
  static let length = 180

  private static let stepsPerSecond = 20
  private static let mass = 1850.0
  private static let capacity = 57.5
  /// The turns after which the state of charge begins again.
  private static let turns = 100

  /// The state at a time of a turn, with what has accumulated since its start.
  private struct State: Sendable {
    var speed = 0.0
    var acceleration = 0.0
    var power = 0.0
    /// km, and kWh out of and into the battery.
    var distance = 0.0
    var out = 0.0
    var charged = 0.0
  }

  /// The states of a turn; the last one is its end.
  private static let states: [State] = {
    var states: [State] = []
    var state = State()
    for step in 0...(length * stepsPerSecond) {
      let seconds = Double(step) / Double(stepsPerSecond)
      let speed = speed(at: seconds)
      state.acceleration = (speed - state.speed) / 3.6 * Double(stepsPerSecond)
      state.speed = speed
      let velocity = speed / 3.6
      let mechanical = (mass * state.acceleration + 180 + 0.42 * velocity * velocity) * velocity / 1000
      state.power = (mechanical > 0 ? mechanical / 0.92 : mechanical * 0.85) + 0.4
      if isCharging(at: seconds) { state.power = -10.5 }
      let hours = 1 / Double(stepsPerSecond) / 3600
      state.distance += speed * hours
      if state.power > 0 { state.out += state.power * hours } else { state.charged -= state.power * hours }
      states.append(state)
    }
    return states
  }()

  /// km/h
  private static func speed(at seconds: Double) -> Double {
    switch seconds {
    case 8..<28: (seconds - 8) * 5.5
    case 28..<78: 110
    case 78..<98: (98 - seconds) * 5.5
    default: 0
    }
  }

  private static func isPlugged(at seconds: Double) -> Bool { (110..<170).contains(seconds) }
  private static func isCharging(at seconds: Double) -> Bool { (115..<165).contains(seconds) }

  /// The values of a car in its profile's terms, a time in seconds after the start.
  static func values(at time: Double) -> [String: Value] {
    let (turn, seconds) = (Int(time) / length, time - Double(Int(time) / length * length))
    let (state, whole) = (states[Int((seconds * Double(stepsPerSecond)).rounded())], states[states.count - 1])
    let voltage = 364 - state.power * 0.12
    let used = Double(turn % turns) * (whole.out - whole.charged) + state.out - state.charged
    let charge = 74 - used / capacity * 100
    let isCharging = isCharging(at: seconds)
    let torque = state.speed > 0 ? state.power * 1000 / (state.speed / 3.6 / 0.34 * 9) : 0
    let isDriving = (8..<103).contains(seconds)
    return [
      "speed": .float(state.speed), "gear": .string(isDriving ? "drive" : "park"),
      "pedal-position": .float(state.acceleration > 0.1 ? 45 : state.speed > 1 && state.acceleration > -0.1 ? 14 : 0),
      "brake-pedal": .bool((94..<103).contains(seconds)),
      "steering-angle": .float(state.speed > 20 ? (seconds * 37).truncatingRemainder(dividingBy: 24) - 12 : 0),
      "motor-torque-rear": .float(torque), "motor-torque-front": .float(torque * 0.3),
      "motor-power-rear": .float(isCharging ? 0 : state.power * 0.7), "motor-power-front": .float(isCharging ? 0 : state.power * 0.22),
      "odometer": .float(24_310 + Double(turn) * whole.distance + state.distance),
      "battery-voltage": .float(voltage), "battery-current": .float(state.power * 1000 / voltage),
      "charging-time": .float(isCharging ? max(1, (90 - charge) / 100 * capacity / 10.5 * 60) : 4095),
      "state-of-charge": .float(charge), "state-of-charge-display": .float(charge - 0.8), "range": .float(charge * 4.3),
      "charging": .bool(isCharging),
      "charging-status": .string(isCharging ? "charging" : isPlugged(at: seconds) ? "complete" : "disconnected"),
      "main-relay": .bool(true), "isolation-resistance": .int(6500), "ac-plug": .bool(isPlugged(at: seconds)), "dc-plug": .bool(false),
      "charging-limit": .float(90), "charger-voltage": .float(isPlugged(at: seconds) ? 232 : 0),
      "charger-current": .float(isCharging ? 16 : 0), "charger-power": .float(isCharging ? 11.1 : 0),
      "max-charge-power": .float(85), "max-discharge-power": .float(255),
      "cell-voltage-max": .float(voltage / 96 + 0.004), "cell-voltage-max-cell": .int(17), "cell-voltage-min": .float(voltage / 96 - 0.006),
      "cell-voltage-min-cell": .int(63), "battery-temperature-max": .float(28.5), "battery-temperature-min": .float(26),
      "outdoor-temperature": .float(14.5), "battery-coolant-temperature": .float(24.5), "powertrain-coolant-temperature": .float(31),
      "indoor-temperature": .float(21.4), "motor-temperature-rear": .float(42 + state.speed / 10), "inverter-temperature-rear": .float(36),
      "motor-temperature-front": .float(39), "energy-out": .float(4890 + Double(turn) * whole.out + state.out),
      "energy-in": .float(5197 + Double(turn) * whole.charged + state.charged), "energy-charged-ac": .float(2594.2),
      "energy-charged-dc": .float(1716), "aux-battery-voltage": .float(13.6), "aux-battery-temperature": .float(23),
      "dc-dc-voltage": .float(13.7), "dc-dc-current": .float(22),
    ]
  }
}
