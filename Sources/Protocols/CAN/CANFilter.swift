// Which frames of a bus a machine receives. The kernel drops the others before they reach the daemon.

/// A set of identifiers: those that agree with `identifier` in the bits of `mask` and have the same length.
public struct CANFilter: Hashable, Sendable {
  package let identifier: CANIdentifier
  package let mask: UInt32

  package init(_ identifier: CANIdentifier, mask: UInt32) { (self.identifier, self.mask) = (identifier, mask) }

  package func matches(_ other: CANIdentifier) -> Bool {
    other.is29Bit == identifier.is29Bit && (other.number ^ identifier.number) & mask == 0
  }
}
