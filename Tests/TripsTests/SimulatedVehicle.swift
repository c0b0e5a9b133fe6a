// A vehicle that follows a script in virtual time and writes the samples that vehicled would publish. It knows the true distance and energy.

import Protocols
import Trips

struct SimulatedVehicle {
  /// What the vehicle reports.
  struct Model {
    var gear = true
    var ignition = false
    var charging = false
    var speed = true
    var odometerResolution: Double? = 1
    var counters = true
    var battery = true
    var engine = false
    var isBoard = false
  }

  let model: Model
  private(set) var samples: [Sample] = []
  /// Seconds since the start of the script.
  private(set) var seconds = 0
  /// The truth.
  private(set) var kilometres: Double
  private(set) var energyOut = 10_000.0
  private(set) var energyIn = 10_500.0
  var charge = 80.0
  var gear = "park-or-neutral"
  var ignition = false
  var hasLink = true
  /// The roles whose values are absent.
  var absent: Set<Role> = []
  private var speed = 0.0
  /// kW, positive out of the battery; 0.3 while ready.
  private var power = 0.3
  private var start: Int64
  private static let capacity = 70.0

  init(_ model: Model, start: Int64 = 1_790_000_000, kilometres: Double = 20_000) {
    (self.model, self.start, self.kilometres) = (model, start, kilometres)
  }

  var origin: Int64 { 1_790_000_000_000_000 }

  var time: Int64 { (start + Int64(seconds)) * 1_000_000 }

  /// Steps the clock.
  mutating func stepClock(_ step: Int64) { start += step }

  mutating func emit(_ role: Role, _ value: Double?) {
    guard hasLink else { return }
    samples.append(Sample(time, role, absent.contains(role) ? nil : value))
  }

  mutating func emit(_ property: String, _ type: ValueType, _ unit: String?, _ value: Value) {
    guard hasLink, let signal = Signal(property: property, type: type, unit: unit), !absent.contains(signal.role) else { return }
    samples.append(signal.sample(.value(value), at: time))
  }

  mutating func state(_ name: String) { samples.append(Signal.state.sample(.value(.string(name)), at: time)) }

  /// Drives at a speed in km/h, with a constant power in kW.
  mutating func drive(_ seconds: Int, _ speed: Double, power: Double = 10) {
    if model.gear { gear = speed < 0 ? "reverse" : "drive" }
    ignition = true
    run(seconds, speed, power)
  }

  /// Is towed with the ignition off.
  mutating func tow(_ seconds: Int, _ speed: Double) { run(seconds, speed, 0) }

  /// Is stationary and switched on.
  mutating func idle(_ seconds: Int) { run(seconds, 0, 0.5) }

  /// Is stationary and switched off; the car still responds.
  mutating func park(_ seconds: Int) {
    (gear, ignition) = ("park-or-neutral", false)
    run(seconds, 0, 0)
  }

  mutating func plugIn(_ seconds: Int, kilowatts: Double, ignition: Bool = false) {
    (gear, self.ignition) = ("park-or-neutral", ignition)
    run(seconds, 0, -kilowatts)
  }

  /// The car is asleep, and no value is published.
  mutating func sleep(_ seconds: Int, state name: String = "car-asleep") {
    (gear, ignition) = ("park-or-neutral", false)
    for role in Role.allCases where role != .state && role != .odometer { emit(role, nil) }
    state(name)
    self.seconds += seconds
  }

  /// Drives at this speed without a link.
  mutating func offline(_ seconds: Int, _ speed: Double = 0, power: Double = 0) {
    hasLink = false
    run(seconds, speed, power)
    hasLink = true
  }

  private mutating func run(_ duration: Int, _ speed: Double, _ power: Double) {
    (self.speed, self.power) = (speed, power)
    for _ in 0..<duration {
      publish()
      seconds += 1
      kilometres += abs(speed) / 3600
      if power > 0 { energyOut += power / 3600 } else { energyIn -= power / 3600 }
      charge -= power / 3600 / Self.capacity * 100
    }
  }

  private func floor(_ value: Double, _ resolution: Double) -> Double {
    let steps = 1 / resolution
    return (value * steps + 1e-6).rounded(.down) / steps
  }

  private mutating func publish() {
    if model.speed { emit("speed", .float, "km/h", .float((speed * 64).rounded() / 64)) }
    if model.engine {
      emit("rpm", .float, "rpm", .float(ignition ? 800 + abs(speed) * 20 : 0))
    } else {
      emit("rpm", .int, "rpm", .int(Int(speed * 80)))
    }
    if model.gear { emit("gear", .string, nil, .string(gear)) }
    if model.ignition { emit("ignition", .bool, nil, .bool(ignition)) }
    if model.battery { publishBattery() }
    if model.engine { emit("fuel-rate", .float, "L/h", .float(ignition ? 0.8 + abs(speed) * 0.06 : 0)) }
    if seconds % 60 == 7 { publishOdometer() }
  }

  /// Publishes the odometer, which the daemon reads once a minute.
  mutating func publishOdometer() {
    guard let resolution = model.odometerResolution else { return }
    emit(model.isBoard ? "total-distance" : "odometer", .float, "km", .float(floor(kilometres, resolution)))
  }

  private mutating func publishBattery() {
    let voltage = model.isBoard ? 40.0 : 400
    emit("battery-current", .float, "A", .float((power * 1000 / voltage * 10).rounded() / 10))
    emit("battery-voltage", .float, "V", .float(voltage))
    emit(model.isBoard ? "battery" : "state-of-charge", .float, "%", .float(floor(charge, 0.5)))
    if model.charging { emit("charging", .bool, nil, .bool(power < -0.5 && speed == 0)) }
    guard model.counters else { return }
    if model.isBoard {
      emit("energy-used", .float, "Wh", .float(floor((energyOut - 10_000) * 1000, 0.0001)))
      emit("energy-regenerated", .float, "Wh", .float(floor((energyIn - 10_500) * 1000, 0.0001)))
    } else {
      emit("energy-out", .float, "kWh", .float(floor(energyOut, 0.1)))
      emit("energy-in", .float, "kWh", .float(floor(energyIn, 0.1)))
    }
  }
}

extension SimulatedVehicle.Model {
  /// An E-GMP car: gear, but neither ignition, charging nor plugs.
  static let eGMP = Self()
  /// A Kona or Niro.
  static let kona = Self(ignition: true, charging: true)
  /// A petrol car with an odometer, without gear and ignition.
  static let petrol = Self(gear: false, odometerResolution: 0.1, counters: false, battery: false, engine: true)
  /// A longboard.
  static let board = Self(gear: false, odometerResolution: 0.001, isBoard: true)
}
