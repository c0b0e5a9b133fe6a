// The faults of one running device.

import Protocols

/// The faults of a device. The device counts its items: replies, messages or reads. A fault with a start time is activated only once.
struct FaultSet<Kind: FaultKind>: Sendable {
  private let faults: [Fault<Kind>]
  /// The indices of faults with a start time that have been active.
  private var triggered: Set<Int> = []

  init(_ faults: [Fault<Kind>]) { self.faults = faults }

  func contains(_ kind: Kind) -> Bool { faults.contains { $0.kind == kind } }

  /// Returns the first fault of this kind that affects item number `item` (from 1), `time` after the start. A fault with a start time is
  /// returned only once.
  mutating func due(_ kind: Kind, item: Int, after time: Nanoseconds) -> Fault<Kind>? {
    for (index, fault) in faults.enumerated() where fault.kind == kind {
      switch fault.trigger {
      case .always: return fault
      case .every(let count): if item % count == 0 { return fault }
      case .after(let start): if time >= start, triggered.insert(index).inserted { return fault }
      }
    }
    return nil
  }
}
