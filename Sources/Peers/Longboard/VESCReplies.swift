// The replies of a simulated VESC. Commands that its firmware does not support get no reply.
// Source: comm/commands.c and commands.c of vedderb/bldc.

import Protocols

/// The limits that a host may change; they last until the next restart.
struct VESCRuntimeLimits: Sendable {
  /// The scales of the braking and driving current, followed by pairs of a minimum and a maximum: ERPM, duty cycle, power in W, battery
  /// current in A.
  var values: [Float] = [1, 1, -100_000, 100_000, 0.005, 0.95, -1500, 1500, -20, 40]
  private static let motorCurrent = 60.0

  /// The resulting limits of the motor current in A and the speed in m/s.
  var motion: (current: Double, speed: Double) {
    let revolutions = Double(values[3]) / 60 / VESCRide.polePairs / VESCRide.gearRatio
    return (VESCRuntimeLimits.motorCurrent * Double(values[1]), revolutions * .pi * VESCRide.wheelDiameter)
  }
}

extension VESC {
  /// Returns the reply to a command, or nil if there is none. `canID` is the CAN ID of the VESC that received the command.
  mutating func reply(to payload: [UInt8], as canID: UInt8, at now: Instant) -> [UInt8]? {
    switch payload[0] {
    case 0: return firmware  // COMM_FW_VERSION
    case 4: return values(as: canID)  // COMM_GET_VALUES
    case 47 where model.supportsSetupValues:  // COMM_GET_VALUES_SETUP
      return [47] + setup(as: canID, at: now).flatMap(\.self)
    case 51 where model.supportsSelectiveValues && payload.count >= 5:  // COMM_GET_VALUES_SETUP_SELECTIVE
      let mask = payload[1...4].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
      return payload.prefix(5) + setup(as: canID, at: now).enumerated().filter { mask >> UInt32($0.offset) & 1 != 0 }.flatMap(\.element)
    case 48 where model.supportsSetupValues && payload.count >= 37: return setLimits(payload)  // COMM_SET_MCCONF_TEMP
    case 62 where model.supportsPing: return [62, VESC.otherCANID]  // COMM_PING_CAN
    case 91 where model.supportsLimits:  // COMM_GET_MCCONF_TEMP
      return [91] + limits.values.flatMap(VESCPacketReader.bytes) + [UInt8(VESCRide.polePairs * 2)]
        + VESCPacketReader.bytes(Float(VESCRide.gearRatio)) + VESCPacketReader.bytes(Float(VESCRide.wheelDiameter))
    default: return nil
    }
  }

  private var firmware: [UInt8] {
    var reply = [0] + model.version
    if model == .v218 { return reply }
    reply += Array("60".utf8) + [0] + (1...12).map { UInt8($0) }
    if model.isAtLeast(.v502) { reply += [0, 0, 0, 0] }
    if model.isAtLeast(.v600) { reply += [0, 0, 0, 0, 0] }
    return reply
  }

  private mutating func setLimits(_ payload: [UInt8]) -> [UInt8]? {
    let numbers = VESCPacketReader.floats(payload[5...])
    for (index, number) in numbers.prefix(10).enumerated() where number.isFinite { limits.values[index] = number }
    for index in [0, 1] { limits.values[index] = min(max(limits.values[index], 0), 1) }
    if payload[2] != 0 { forwardedLimits = limitsInEffect }
    return payload[3] != 0 ? [48] : nil
  }

  private func scaled<Number: FixedWidthInteger>(_ number: Double, _ scale: Double, _: Number.Type) -> [UInt8] {
    var bytes = BigEndianWriter([])
    bytes.add(Number(clamping: Int((number * scale).rounded())))
    return bytes.bytes
  }

  private func short(_ number: Double, _ scale: Double) -> [UInt8] { scaled(number, scale, Int16.self) }
  private func long(_ number: Double, _ scale: Double) -> [UInt8] { scaled(number, scale, Int32.self) }

  private var temperature: Double { 28 + min(abs(ride.motorCurrent), 30) / 3 }

  private func values(as canID: UInt8) -> [UInt8] {
    let temperatures = [0, -0.1, 0.1].flatMap { short(temperature + $0, 10) }
    let counters =
      long(ride.chargeUsed, 1e4) + long(ride.chargeRegenerated, 1e4) + long(ride.chargeUsed * 37, 1e4)
      + long(ride.chargeRegenerated * 37, 1e4)
      + long(ride.tachometerSteps(ride.distance), 1) + long(ride.tachometerSteps(ride.travelled), 1) + [0]
    let currents = long(ride.motorCurrent, 100) + long(ride.inputCurrent, 100)
    let motion = short(ride.duty, 1000) + long(ride.erpm, 1) + short(ride.voltage, 10)
    if model == .v218 {
      return [4] + temperatures + temperatures + short(temperature - 2, 10) + currents + motion + counters
    }
    var reply = [4] + short(temperature, 10) + short(temperature + 3, 10) + currents + long(0, 100) + long(ride.motorCurrent, 100) + motion
    reply += counters
    if model.isAtLeast(.v334) { reply += long(0, 1e6) }
    if model.isAtLeast(.v340) { reply += [canID] }
    if model.isAtLeast(.v348) { reply += temperatures }
    if model.isAtLeast(.v360) { reply += long(0, 1000) + long(ride.duty * ride.voltage, 1000) }
    if model.isAtLeast(.v600) { reply += [isTimedOut ? 1 : 0] }
    return reply
  }

  /// The fields of COMM_GET_VALUES_SETUP, each as its bytes.
  private func setup(as canID: UInt8, at now: Instant) -> [[UInt8]] {
    var fields = [
      short(temperature, 10), short(temperature + 3, 10), long(ride.motorCurrent, 100), long(ride.inputCurrent, 100),
      short(ride.duty, 1000),
      long(ride.erpm, 1), long(ride.speed, 1000), short(ride.voltage, 10), short(ride.stateOfCharge, 1000), long(ride.chargeUsed, 1e4),
      long(ride.chargeRegenerated, 1e4), long(ride.chargeUsed * 37, 1e4), long(ride.chargeRegenerated * 37, 1e4), long(ride.distance, 1000),
      long(ride.travelled, 1000), long(0, 1e6), [0], [canID], [2], long(ride.stateOfCharge * 370, 1000),
    ]
    if model.isAtLeast(.v502) { fields.append(scaled(1_204_000 + ride.travelled, 1, UInt32.self)) }
    if model.isAtLeast(.v600) { fields.append(scaled(Double(now - poweredOn) / 1e6, 1, UInt32.self)) }
    return fields
  }
}
