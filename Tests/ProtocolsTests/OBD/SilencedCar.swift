@testable import Peers
@testable import Protocols

/// An electric car that does not respond to some requests.
struct SilencedCar: Car {
  private let isSilent: @Sendable (_ request: [UInt8], _ address: UInt32, _ now: Instant) -> Bool
  private var car = ElectricCar(.eGMP)

  init(_ isSilent: @escaping @Sendable (_ request: [UInt8], _ address: UInt32, _ now: Instant) -> Bool) { self.isSilent = isSilent }

  var bus: DiagnosticBus { car.bus }
  var padding: UInt8? { car.padding }
  var ignition: Ignition { car.ignition }
  func supplyMillivolts(at now: Instant) -> Int { car.supplyMillivolts(at: now) }
  mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
    isSilent(request, address, now) ? [] : car.replies(to: request, at: address, now)
  }
}
