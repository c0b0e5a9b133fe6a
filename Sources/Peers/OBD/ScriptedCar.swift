// Replays the responses of recorded cars, or responses that tests define.

import Protocols

/// A car with a fixed table of responses.
public struct ScriptedCar: Car {
  public let bus: DiagnosticBus
  public let padding: UInt8?
  public let ignition: Ignition
  private let responses: [[UInt8]: [Reply]]
  /// An identifier of requests whose frames begin with an address byte, and the ECU that receives them.
  private let extended: (address: UInt32, ecu: UInt8)?

  /// Creates a car that sends these responses to requests that are sent to any address. At the address of `extended`, only this ECU responds.
  public init(
    _ bus: DiagnosticBus = .can11, padding: UInt8? = 0, _ ignition: Ignition = Ignition(), extended: (address: UInt32, ecu: UInt8)? = nil,
    responses: [[UInt8]: [Reply]]
  ) {
    (self.bus, self.padding, self.ignition, self.extended, self.responses) = (bus, padding, ignition, extended, responses)
  }

  public func supplyMillivolts(at now: Instant) -> Int { ignition.supply(14_200, in: [.run, .on], at: now) }

  public func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] { responses[request] ?? [] }

  public func hasAddressByte(at address: UInt32) -> Bool { address == extended?.address }

  public func replies(to request: [UInt8], at address: UInt32, ecu: UInt8, _ now: Instant) -> [Reply] {
    ecu == extended?.ecu ? responses[request] ?? [] : []
  }
}
