// The replies of a simulated VESC. Commands that its firmware does not know get no reply.
// Facts: comm/commands.c and commands.c of vedderb/bldc.

import Protocols

/// The limits that a host may change until the next restart.
struct VESCRuntimeLimits: Sendable {
  /// Scales of braking and driving current; min and max of ERPM, duty, W and battery A.
  var now: [Float] = [1, 1, -100_000, 100_000, 0.005, 0.95, -1500, 1500, -20, 40]
  private static let motorCurrent = 60.0

  /// The resulting limits of the motor current in A and of the speed in m/s.
  var ofRide: (current: Double, speed: Double) {
    let turns = Double(now[3]) / 60 / VESCRide.polePairs / VESCRide.gearRatio
    return (VESCRuntimeLimits.motorCurrent * Double(now[1]), turns * .pi * VESCRide.wheel)
  }
}

extension VESC {
  mutating func answer(to payload: [UInt8], as number: UInt8, at now: Instant) -> [UInt8]? {
    switch payload[0] {
    case 0: return firmware
    case 4: return values(as: number)
    case 47 where model.knowsSetup: return [47] + setup(as: number, at: now).flatMap(\.self)
    case 51 where model.knowsSelection && payload.count >= 5:
      let mask = payload[1...4].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
      return payload.prefix(5) + setup(as: number, at: now).enumerated().filter { mask >> UInt32($0.offset) & 1 != 0 }.flatMap(\.element)
    case 48 where model.knowsSetup && payload.count >= 37: return limit(payload)
    case 62 where model.knowsPing: return [62, VESC.neighbour]
    case 91 where model.knowsLimits:
      return [91] + limits.now.flatMap(VESCPacketReader.bytes) + [UInt8(VESCRide.polePairs * 2)]
        + VESCPacketReader.bytes(Float(VESCRide.gearRatio)) + VESCPacketReader.bytes(Float(VESCRide.wheel))
    default: return nil
    }
  }

  private var firmware: [UInt8] {
    var answer = [0] + model.version
    if model == .v218 { return answer }
    answer += Array("60".utf8) + [0] + (1...12).map { UInt8($0) }
    if model.isAtLeast(.v502) { answer += [0, 0, 0, 0] }
    if model.isAtLeast(.v600) { answer += [0, 0, 0, 0, 0] }
    return answer
  }

  private mutating func limit(_ payload: [UInt8]) -> [UInt8]? {
    let numbers = VESCPacketReader.floats(payload[5...])
    for (index, number) in numbers.prefix(10).enumerated() where number.isFinite { limits.now[index] = number }
    for index in [0, 1] { limits.now[index] = min(max(limits.now[index], 0), 1) }
    if payload[2] != 0 { passedOn = allowed }
    return payload[3] != 0 ? [48] : nil
  }

  private func scaled<Number: FixedWidthInteger>(_ number: Double, _ scale: Double, _: Number.Type) -> [UInt8] {
    var bytes = BigEndian([])
    bytes.add(Number(clamping: Int((number * scale).rounded())))
    return bytes.bytes
  }

  private func short(_ number: Double, _ scale: Double) -> [UInt8] { scaled(number, scale, Int16.self) }
  private func long(_ number: Double, _ scale: Double) -> [UInt8] { scaled(number, scale, Int32.self) }

  private var temperature: Double { 28 + min(abs(ride.motorCurrent), 30) / 3 }

  private func values(as number: UInt8) -> [UInt8] {
    let temperatures = [0, -0.1, 0.1].flatMap { short(temperature + $0, 10) }
    let counters =
      long(ride.chargeUsed, 1e4) + long(ride.chargeBack, 1e4) + long(ride.chargeUsed * 37, 1e4) + long(ride.chargeBack * 37, 1e4)
      + long(ride.steps(ride.distance), 1) + long(ride.steps(ride.travelled), 1) + [0]
    let currents = long(ride.motorCurrent, 100) + long(ride.inputCurrent, 100)
    let motion = short(ride.duty, 1000) + long(ride.erpm, 1) + short(ride.voltage, 10)
    if model == .v218 {
      return [4] + temperatures + temperatures + short(temperature - 2, 10) + currents + motion + counters
    }
    var answer = [4] + short(temperature, 10) + short(temperature + 3, 10) + currents + long(0, 100) + long(ride.motorCurrent, 100) + motion
    answer += counters
    if model.isAtLeast(.v334) { answer += long(0, 1e6) }
    if model.isAtLeast(.v340) { answer += [number] }
    if model.isAtLeast(.v348) { answer += temperatures }
    if model.isAtLeast(.v360) { answer += long(0, 1000) + long(ride.duty * ride.voltage, 1000) }
    if model.isAtLeast(.v600) { answer += [isTimedOut ? 1 : 0] }
    return answer
  }

  /// The fields of COMM_GET_VALUES_SETUP.
  private func setup(as number: UInt8, at now: Instant) -> [[UInt8]] {
    var fields = [
      short(temperature, 10), short(temperature + 3, 10), long(ride.motorCurrent, 100), long(ride.inputCurrent, 100),
      short(ride.duty, 1000),
      long(ride.erpm, 1), long(ride.speed, 1000), short(ride.voltage, 10), short(ride.charge, 1000), long(ride.chargeUsed, 1e4),
      long(ride.chargeBack, 1e4), long(ride.chargeUsed * 37, 1e4), long(ride.chargeBack * 37, 1e4), long(ride.distance, 1000),
      long(ride.travelled, 1000), long(0, 1e6), [0], [number], [2], long(ride.charge * 370, 1000),
    ]
    if model.isAtLeast(.v502) { fields.append(scaled(1_204_000 + ride.travelled, 1, UInt32.self)) }
    if model.isAtLeast(.v600) { fields.append(scaled(Double(now - poweredOn) / 1e6, 1, UInt32.self)) }
    return fields
  }
}
