// A car with a fixed table of responses, from captures of real cars or tests.

import Protocols

/// A car with a fixed table of responses.
public struct CapturedCar: Car {
  public let bus: DiagnosticBus
  public let padding: UInt8?
  public let ignition: Ignition
  private let answers: [[UInt8]: [Reply]]

  /// Creates a car that gives these answers at any address.
  public init(_ bus: DiagnosticBus = .can11, padding: UInt8? = 0, _ ignition: Ignition = Ignition(), answers: [[UInt8]: [Reply]]) {
    (self.bus, self.padding, self.ignition, self.answers) = (bus, padding, ignition, answers)
  }

  public func supply(at now: Instant) -> Int { ignition.supply(14_200, in: [.run, .on], at: now) }

  public func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] { answers[request] ?? [] }
}
