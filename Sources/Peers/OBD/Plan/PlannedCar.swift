// An electric car that follows a plan. Its state is continuous over years: odometer, state of charge, counters, temperatures. The ECUs and
// their replies are those of `ElectricCar`.
// Source: the road-load equation of DriveCycle, with gradients; measured charge curves of 800 V cars.

import Protocols

/// An electric car that follows a plan.
public struct PlannedCar: Car {
  private static let vehicle = ElectricCar.longRange.vehicle
  /// The maximum length of a simulation step, in s.
  private static let maxStep = 0.1
  /// The time for which the bus stays awake after a charge has reached its limit.
  private static let wakeTime: Nanoseconds = 60 * .second
  /// The power of the auxiliary consumers, in kW.
  private static let auxiliaries = 0.6

  public let plan: DrivingPlan
  private var electricCar = ElectricCar(.eGMP)
  private var random: SeededRandom
  /// The time to which the state has advanced.
  private var time: Nanoseconds = 0
  /// The index of the last activity that had started at that time.
  private var index: Int?
  private var speed: PlannedSpeed?
  /// When the charge of the current activity reached its limit, or nil if it has not.
  private var chargedAt: Nanoseconds?
  private var state = DriveCycle.Sample(
    seconds: 0, speed: 0, motorSpeed: 0, current: 0, voltage: 720, stateOfCharge: 80, chargeOut: 0, chargeIn: 0, energyOut: 0, energyIn: 0,
    batteryTemperature: 15, coolantTemperature: 15, distance: 0)
  /// The day of the year at the start of the plan, which determines the outdoor temperature.
  private let firstDay: Int

  public init(_ plan: DrivingPlan, seed: UInt64, firstDay: Int = 0) {
    (self.plan, self.firstDay, random) = (plan, firstDay, SeededRandom(seed: seed ^ 0x5EED))
  }

  public var bus: DiagnosticBus { electricCar.bus }
  public var padding: UInt8? { electricCar.padding }
  /// The state of charge in %.
  public var stateOfCharge: Double { state.stateOfCharge }
  /// The distance in km since the start of the plan.
  public var distance: Double { state.distance }

  // MARK: The bus

  private func activity(at now: Instant) -> PlannedActivity? {
    guard let index = plan.index(at: now) else { return nil }
    return plan.activities[index]
  }

  /// The end of an activity: a charge ends when its limit is reached.
  private func end(of activity: PlannedActivity) -> Nanoseconds {
    guard let chargedAt, chargedAt >= activity.start else { return activity.end }
    return min(activity.end, chargedAt + Self.wakeTime)
  }

  /// Always `run`: the plan, not the key, determines `busState` and `supplyMillivolts`.
  public var ignition: Ignition { Ignition() }

  public func busState(at now: Instant) -> Ignition.BusState {
    guard let activity = activity(at: now) else { return .dead }
    let timeOff = now - end(of: activity)
    return timeOff < 0 ? .awake : timeOff < Ignition.busHoldTime ? .silent : .dead
  }

  /// The voltage of the 12 V battery in mV, which falls slowly while the car is off.
  public func supplyMillivolts(at now: Instant) -> Int {
    guard let activity = activity(at: now) else { return 12_700 }
    let timeOff = now - end(of: activity)
    return timeOff < 0 ? 14_400 : max(12_300, 12_800 - Int(timeOff / (1200 * .second)))
  }

  public mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
    advance(to: now)
    var sample = state
    if speed != nil || sample.current < 0 {
      sample.current += random.noise(sample.speed > 0 ? 0.6 : 0.15)
      sample.voltage += random.noise(0.1)
    }
    if sample.speed > 0 { sample.motorSpeed += random.noise(3) }
    electricCar.state = sample
    return electricCar.replies(to: request, at: address, now)
  }

  // MARK: The state

  /// Advances the state to this time.
  public mutating func advance(to now: Instant) {
    while time < now {
      let next = (index ?? -1) + 1
      let following = next < plan.activities.count ? plan.activities[next].start : Int64.max
      let end = index.map { plan.activities[$0].end } ?? 0
      if time >= following {
        begin(next)
      } else if time >= end {
        park(until: min(now, following))
      } else {
        step(min(now - time, end - time))
      }
    }
  }

  private mutating func begin(_ next: Int) {
    (index, chargedAt, speed, state.isInDrive) = (next, nil, nil, false)
    let activity = plan.activities[next]
    if case .trip(let road) = activity.kind {
      speed = PlannedSpeed(road, length: Double(activity.end - activity.start) / 1e9, seed: activity.seed)
    }
  }

  private mutating func park(until end: Nanoseconds) {
    let seconds = Double(end - time) / 1e9
    time = end
    (speed, state.isInDrive) = (nil, false)
    (state.speed, state.motorSpeed, state.current) = (0, 0, 0)
    state.outdoorTemperature = outdoorTemperature
    let share = seconds / (seconds + 10_000)
    state.batteryTemperature += (outdoorTemperature - state.batteryTemperature) * share
    state.coolantTemperature += (outdoorTemperature - state.coolantTemperature) * share
  }

  private mutating func step(_ length: Nanoseconds) {
    let step = min(Double(length) / 1e9, Self.maxStep)
    time += min(length, Nanoseconds(Self.maxStep * 1e9))
    guard let index else { return }
    let activity = plan.activities[index]
    let elapsed = Double(time - activity.start) / 1e9
    let openVoltage = Self.vehicle.cells * (3.45 + 0.005 * state.stateOfCharge)
    var power = Self.auxiliaries
    switch activity.kind {
    case .trip:
      speed?.advance(to: elapsed, step: step)
      state.isInDrive = speed?.isInDrive ?? false
      power += drivingPower()
    case .charge(let maxPower, let limit): power = chargingPower(maxPower, limit, elapsed)
    }
    state.current = power * 1000 / openVoltage
    state.voltage = openVoltage - state.current * Self.vehicle.packResistance
    count(step)
    state.seconds += step
    let heat = min(15, abs(state.current) / 10)
    state.batteryTemperature += (outdoorTemperature + 8 + heat - state.batteryTemperature) * step / 5000
    state.coolantTemperature += (outdoorTemperature + 15 + heat - state.coolantTemperature) * step / 1500
    state.outdoorTemperature = outdoorTemperature
  }

  /// The power for driving in kW; negative during regenerative braking.
  private mutating func drivingPower() -> Double {
    let (metresPerSecond, vehicle) = (speed?.speed ?? 0, Self.vehicle)
    state.speed = metresPerSecond * 3.6
    state.motorSpeed = state.speed * vehicle.motorRPMPerKmh
    let slope = vehicle.mass * 9.81 * (speed?.gradient ?? 0)
    let force =
      vehicle.mass * (speed?.acceleration ?? 0) + vehicle.rollingResistance + slope + vehicle.drag * metresPerSecond * metresPerSecond
    let load = force * metresPerSecond / 1000
    return load > 0 ? load / 0.9 : load * 0.75
  }

  /// The power of a charger in kW, negative. A fast charge gets slower as the battery fills.
  private mutating func chargingPower(_ maxPower: Double, _ limit: Double, _ elapsed: Double) -> Double {
    (state.speed, state.motorSpeed) = (0, 0)
    if state.stateOfCharge >= limit, chargedAt == nil { chargedAt = time }
    guard elapsed >= PlannedSpeed.standingTime, chargedAt == nil else { return 0.2 }
    return -min(maxPower * 0.93, max(30, 230 - 2.4 * state.stateOfCharge))
  }

  private mutating func count(_ step: Double) {
    let charge = state.current * step / 3600
    let energy = charge * state.voltage / 1000
    if charge > 0 {
      state.chargeOut += charge
      state.energyOut += energy
    } else {
      state.chargeIn -= charge
      state.energyIn -= energy
    }
    state.stateOfCharge = min(100, max(3, state.stateOfCharge - charge / Self.vehicle.capacity * 100))
    state.distance += state.speed * step / 3600
  }

  /// The sum of a triangle wave over the year and one over the day, from -3 to 22 °C.
  private var outdoorTemperature: Double {
    let day = Double(time) / 86_400e9
    let season = 1 - abs(((day + Double(firstDay)) / 365.25).truncatingRemainder(dividingBy: 1) * 2 - 1)
    let hour = 1 - abs(day.truncatingRemainder(dividingBy: 1) * 2 - 1.2)
    return 18 * season + 6 * hour - 2
  }
}
