// A peer whose clients tell it secrets. Only the peer knows where in the bytes they are, so it is asked before bytes are shown.

import Protocols

/// A peer that hears secrets. What it sends and nobody may see, it marks itself (`Effect.send`, `secret`).
public protocol Redacting: Machine {
  /// How many of the first of these bytes, which it is about to receive, may be shown to a person or kept.
  func printableCount(of bytes: [UInt8]) -> Int
}
