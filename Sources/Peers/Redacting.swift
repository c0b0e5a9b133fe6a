// Peers that receive secrets, and decide which received bytes may be logged.

import Protocols

/// A peer that receives secrets. It marks secrets that it sends itself (`Effect.send`, `secret`).
public protocol Redacting: Machine {
  /// Returns how many leading bytes of this input may be logged. Called before the input is handled.
  func printableCount(of bytes: [UInt8]) -> Int
}
