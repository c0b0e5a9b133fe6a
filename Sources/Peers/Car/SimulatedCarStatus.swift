// The status of the simulated car (batteries, CPU, memory, disk), a pure function of the time since the phone connected.
// Source: Status.py of task123/AutoTT: labels, order and formats of the eight items, limits of the warnings.

/// The status of a car at one instant.
struct SimulatedCarStatus: Sendable {
  /// The temperature in °C above which the car warns.
  static let maxTemperature = 80.0
  /// The temperature in °C below which the car may warn again.
  static let rearmTemperature = 60.0
  /// The voltage in V of the motor battery below which the car warns.
  static let minMotorVoltage = 6.0
  /// The voltage in V of the Raspberry Pi's battery below which the car warns.
  static let minPiVoltage = 4.9

  var motorVoltage: Double  // V
  var piVoltage: Double  // V
  var temperature: Double  // °C
  var cpuUsage: Double  // %
  var memoryUsed: Int  // MB
  private static let memorySize = 948
  var diskUsed: Double  // GB
  private static let diskSize = 14.0

  /// Creates the status at this time in s after the phone connected.
  init(_ seconds: Double, isFlat: Bool = false, isHot: Bool = false) {
    let seconds = max(0, seconds)
    let wave = SimulatedCarStatus.wave(seconds, period: 60)
    let hours = min(seconds / 3600, 4)
    motorVoltage = (isFlat ? 5.72 : 7.41) - 0.2 * hours - 0.03 * wave
    piVoltage = (isFlat ? 4.83 : 5.02) - 0.01 * hours - 0.01 * wave
    temperature = 48.3 + 1.6 * SimulatedCarStatus.wave(seconds, period: 90)
    // Hot for long enough to be noticed, then cool enough to permit the next warning.
    if isHot, seconds.truncatingRemainder(dividingBy: 40) >= 2 { temperature += seconds.truncatingRemainder(dividingBy: 40) < 15 ? 36 : 4 }
    cpuUsage = 5.9 + 3.4 * SimulatedCarStatus.wave(seconds, period: 20)
    memoryUsed = 612 + Int(seconds / 10) % 40
    diskUsed = 3.9 + 0.1 * (hours * 2).rounded(.down)
  }

  /// A triangle wave from -1 to 1, starting at 0.
  private static func wave(_ seconds: Double, period: Double) -> Double {
    let part = (seconds / period).truncatingRemainder(dividingBy: 1)
    return part < 0.25 ? 4 * part : part < 0.75 ? 2 - 4 * part : 4 * part - 4
  }

  /// Returns the eight items, optionally with the escape sequences of `top` around the CPU usage.
  func items(usageHasEscapes: Bool = false) -> [String] {
    let usage = usageHasEscapes ? "\u{1B}[m\u{1B}[1m\(cpuUsage.fixed(1))\u{1B}[m" : cpuUsage.fixed(1)
    return [
      "Motor battery voltage: \(motorVoltage.fixed(2)) V", "Raspberry Pi's battery voltage: \(piVoltage.fixed(2)) V",
      "Temperature: \(temperature.fixed(1)) C", "CPU usage: \(usage) %", "Memory used: \(memoryUsed) MB",
      "Free memory: \(SimulatedCarStatus.memorySize - memoryUsed) MB", "Disk space used: \(diskUsed.fixed(1)) GB",
      "Free disk space: \(Int(SimulatedCarStatus.diskSize - diskUsed)) GB",
    ]
  }

  /// The items of a modified program. Some lack the colon, the value or the label; others have an unknown label.
  var oddItems: [String] {
    [
      "Motor battery voltage:  V", "Raspberry Pi's battery voltage: \(piVoltage.fixed(2)) V", "Temperature: unknown C", "CPU usage: ",
      "Ready to drive", ": 7 V", "", "Wheel speed: 0.55 m/s", "Fan: on", "Note: a: b", "Free disk space: 10 GB",
    ]
  }
}
