// Replays the responses of recorded cars, or responses that tests define.

import Protocols

/// A car with a fixed table of responses.
public struct ScriptedCar: Car {
  public let bus: DiagnosticBus
  public let padding: UInt8?
  public let ignition: Ignition
  private let responses: [[UInt8]: [Reply]]

  /// Creates a car that sends these responses to requests that are sent to any address.
  public init(_ bus: DiagnosticBus = .can11, padding: UInt8? = 0, _ ignition: Ignition = Ignition(), responses: [[UInt8]: [Reply]]) {
    (self.bus, self.padding, self.ignition, self.responses) = (bus, padding, ignition, responses)
  }

  public func supplyMillivolts(at now: Instant) -> Int { ignition.supply(14_200, in: [.run, .on], at: now) }

  public func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] { responses[request] ?? [] }
}
