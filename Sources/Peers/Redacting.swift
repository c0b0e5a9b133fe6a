// Simulated devices that receive secrets. They decide which received bytes may be logged.

import Protocols

/// A simulated device that receives secrets. It marks secrets in its own output with the `secret` flag of `Effect.send`.
public protocol Redacting: Machine {
  /// Returns how many leading bytes of this input may be logged. Called before the input is handled.
  func printableCount(of bytes: [UInt8]) -> Int
}
