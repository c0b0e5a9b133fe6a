// A car that answers from a list: captures of real cars, and whatever a test wants to hear from one. It answers nothing else.

import Protocols

/// A car whose answers are written down.
public struct CapturedCar: Car {
  public let bus: DiagnosticBus
  public let padding: UInt8?
  public let ignition: Ignition
  private let answers: [[UInt8]: [Reply]]

  /// A car that answers these requests so, under whatever address they come.
  public init(_ bus: DiagnosticBus = .can11, padding: UInt8? = 0, _ ignition: Ignition = Ignition(), answers: [[UInt8]: [Reply]]) {
    (self.bus, self.padding, self.ignition, self.answers) = (bus, padding, ignition, answers)
  }

  public func supply(at now: Instant) -> Int { ignition.supply(14_200, in: [.run, .on], at: now) }

  public func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] { answers[request] ?? [] }
}
