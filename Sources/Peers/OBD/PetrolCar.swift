// A petrol car with two emission-related ECUs, ECM and TCM. PetrolParameters has the values, PetrolIdentity the identification.
// Source: SAE J1979 (ISO 15031-5) services 01 to 0A on each bus; ISO 14229 negative responses.

import Protocols

/// A petrol car on the repeating drive cycle.
public struct PetrolCar: Car {
  struct ECU: Sendable {
    /// The number that the standard assigns: 10 for the engine, 11 for the transmission (hex).
    var number: UInt8
    var parameters: [UInt8: PetrolParameters.Parameter]
    var identity: PetrolIdentity
    var memory: TroubleMemory
    /// The PIDs of the freeze frame; the TCM has none.
    var freezeFramePIDs: Set<UInt8> = []
    var monitors: [UInt8: [UInt8]] = [:]
    var isEngine: Bool { number == 0x10 }
  }

  public let bus: DiagnosticBus
  public let padding: UInt8? = 0x00
  public let ignition: Ignition
  private(set) var ecus: [ECU]
  /// An ECU behind the gateway, which does not receive functional requests.
  private let rearAxle = RearAxleECU()
  /// The time of the freeze frame in the drive cycle in s, at a steady 80 km/h.
  private static let freezeFrameTime = 70.0

  /// Creates a car with this bus. With `reportsScaling` the ECM reports its own scaling in PIDs 4F and 50.
  public init(_ bus: DiagnosticBus = .can11, _ ignition: Ignition = Ignition(), reportsScaling: Bool = false) {
    (self.bus, self.ignition) = (bus, ignition)
    let parameters = reportsScaling ? PetrolParameters.engineWithScaling : PetrolParameters.engine
    ecus = [
      ECU(
        // A K-line message holds at most five bytes of a PID.
        number: 0x10, parameters: parameters.filter { bus.isCAN || $0.key != 0x69 }, identity: .engine,
        memory: TroubleMemory(codes: [0x0133, 0x0420], pending: [0x0171], permanent: [0x0420], freezeFrameCode: 0x0133),
        freezeFramePIDs: [0x03, 0x04, 0x05, 0x06, 0x07, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x1F, 0x2F, 0x33, 0x42, 0x43, 0x44],
        monitors: PetrolIdentity.monitors),
      ECU(
        number: 0x11, parameters: PetrolParameters.transmission, identity: .transmission, memory: TroubleMemory(codes: [0x0715])),
    ]
  }

  /// The engine charges the 12 V battery.
  public func supplyMillivolts(at now: Instant) -> Int { ignition.supply(14_200, in: [.run], at: now) }

  public mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
    guard let service = request.first else { return [] }
    let isFunctional = bus.isFunctional(address)
    var replies: [Reply] = []
    for index in ecus.indices where isFunctional || bus.isAddress(address, of: ecus[index].number) {
      let state = state(ecus[index], at: now)
      if service == 0x04, request.count == 1, !state.sample.isRunning {
        ecus[index].memory.clear(state.sample.seconds, state.sample.distance)
      }
      for payload in answers(of: ecus[index], to: request, service, state) where !(isFunctional && isSuppressed(payload)) {
        // The TCM is a little slower. On a K-line responses follow each other.
        replies.append(
          Reply(id: bus.responseAddress(of: ecus[index].number), payload: payload, delay: Nanoseconds(index) * 700 * .microsecond))
      }
    }
    if bus.isCAN, !isFunctional, bus.isAddress(address, of: RearAxleECU.number) {
      let sample = PetrolDrive.sample(Double(ignition.drivingTime(at: now)) / 1e9, isRunning: ignition.duration(in: [.run], at: now) != nil)
      replies += rearAxle.answers(to: request, sample).map { Reply(id: bus.responseAddress(of: RearAxleECU.number), payload: $0) }
    }
    return replies
  }

  /// Whether this is a negative response that ECUs do not send to functional requests (ISO 14229).
  private func isSuppressed(_ payload: [UInt8]) -> Bool {
    payload.first == 0x7F && payload.count == 3 && [0x11, 0x12, 0x31].contains(payload[2])
  }

  private func state(_ ecu: ECU, at now: Instant) -> PetrolState {
    let time = ignition.duration(in: [.run], at: now)
    return PetrolState(
      sample: PetrolDrive.sample(Double(ignition.drivingTime(at: now)) / 1e9, isRunning: time != nil), memory: ecu.memory,
      supplyMillivolts: supplyMillivolts(at: now), runTime: Double(time ?? 0) / 1e9)
  }

  /// The response messages of an ECU; on a K-line there may be several.
  private func answers(of ecu: ECU, to request: [UInt8], _ service: UInt8, _ state: PetrolState) -> [[UInt8]] {
    let arguments = request.dropFirst()
    switch service {
    case 0x01:
      // Up to six PIDs on CAN. Unsupported ones are omitted.
      guard (1...(bus.isCAN ? 6 : 1)).contains(arguments.count) else { return [] }
      let values = arguments.flatMap { number in PetrolParameters.value(number, of: ecu.parameters, state).map { [number] + $0 } ?? [] }
      return values.isEmpty ? [] : [[0x41] + values]
    case 0x02 where !ecu.freezeFramePIDs.isEmpty:
      return freezeFrame(arguments, of: ecu).map { [[0x42] + $0] } ?? []
    case 0x0A where !bus.isCAN: return [Reply.negativeResponse(service, 0x11)]
    case 0x03, 0x07, 0x0A:
      guard arguments.isEmpty else { return [Reply.negativeResponse(service, 0x12)] }
      return troubleCodes(ecu.memory.codes(of: service), service)
    case 0x04:
      // While the engine runs, both ECUs refuse to clear.
      return [state.sample.isRunning ? Reply.negativeResponse(0x04, 0x22) : [0x44]]
    case 0x06 where bus.isCAN && ecu.isEngine:
      guard let number = arguments.first, arguments.count == 1 else { return [] }
      if number % 0x20 == 0 {
        return PetrolParameters.bitmap(from: number, of: Array(ecu.monitors.keys)).map { [[0x46, number] + $0] } ?? []
      }
      return ecu.monitors[number].map { [[0x46] + $0] } ?? []
    case 0x09:
      guard let infoType = arguments.first, arguments.count == 1 else { return [] }
      return ecu.identity.answers(infoType, bus)
    case 0x22 where ecu.isEngine && arguments.elementsEqual([0xF1, 0x90]):
      return [[0x62, 0xF1, 0x90] + Array((ecu.identity.vin ?? "").utf8)].filter { bus.isCAN || $0.count <= 7 }
    case 0x22: return [Reply.negativeResponse(service, 0x31)]
    case 0x3E: return arguments.first == 0x80 ? [] : [[0x7E, 0x00]]
    default: return [Reply.negativeResponse(service, 0x11)]
    }
  }

  /// The freeze frame for pairs of a PID and a frame number. There is only frame 0.
  private func freezeFrame(_ arguments: ArraySlice<UInt8>, of ecu: ECU) -> [UInt8]? {
    guard arguments.count % 2 == 0, (2...(bus.isCAN ? 6 : 2)).contains(arguments.count) else { return nil }
    let state = PetrolState(
      sample: PetrolDrive.sample(PetrolCar.freezeFrameTime, isRunning: true), memory: ecu.memory, supplyMillivolts: 14_200,
      runTime: PetrolCar.freezeFrameTime)
    var values: [UInt8] = []
    for index in stride(from: arguments.startIndex, to: arguments.endIndex, by: 2) where arguments[index + 1] == 0 {
      let number = arguments[index]
      if number == 0x02 {
        let code = ecu.memory.freezeFrameCode ?? 0
        values += [number, 0, UInt8(code >> 8), UInt8(code & 0xFF)]
      } else if number % 0x20 == 0 {
        let numbers = ecu.memory.freezeFrameCode == nil ? [0x02] : Array(ecu.freezeFramePIDs) + [0x02]
        if let bitmap = PetrolParameters.bitmap(from: number, of: numbers) { values += [number, 0] + bitmap }
      } else if ecu.memory.freezeFrameCode != nil, ecu.freezeFramePIDs.contains(number),
        let value = PetrolParameters.value(number, of: ecu.parameters, state)
      {
        values += [number, 0] + value
      }
    }
    return values.isEmpty ? nil : values
  }

  /// Trouble codes: with a count on CAN; on a K-line three per message, without a count.
  private func troubleCodes(_ codes: [UInt16], _ service: UInt8) -> [[UInt8]] {
    let bytes = codes.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    if bus.isCAN { return [[service | 0x40, UInt8(clamping: codes.count)] + bytes] }
    return stride(from: 0, to: max(1, bytes.count), by: 6).map { first in
      let message = bytes.dropFirst(first).prefix(6)
      return [service | 0x40] + message + Array(repeating: 0, count: 6 - message.count)
    }
  }
}
