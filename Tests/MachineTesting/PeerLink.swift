// A link with a simulated peer at its other end, which transfers bytes without delay.

import Protocols

public struct PeerLink<Peer: Machine>: LinkedSurroundings {
  public var peer: Peer
  public private(set) var isUp = false
  /// The bytes that the machine has sent, with their times.
  public private(set) var sends: [(at: Instant, bytes: [UInt8])] = []
  /// The texts of the peer's events: buzzer on, LED green.
  public private(set) var reports: [String] = []
  private let takesBytes: Bool

  /// Creates a link that is down. `takesBytes`: whether the machine can send to the peer.
  public init(_ peer: Peer, takesBytes: Bool = true) { (self.peer, self.takesBytes) = (peer, takesBytes) }

  public var nextWake: Instant? { peer.nextWake }
  public mutating func wake(at now: Instant) -> [Input] { give(.wake, at: now) }
  public mutating func change(_ state: LinkState, at now: Instant) -> [Input] { give(.linkChanged(.main, state), at: now) }

  public mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(.main, let bytes, let id, _) where takesBytes:
      sends.append((now, bytes))
      guard isUp else { return id.map { [.sent($0, failure: "link down")] } ?? [] }
      return (id.map { [.sent($0, failure: nil)] } ?? []) + give(.received(.main, bytes), at: now)
    case .resetLink(.main, let reason): return give(.linkChanged(.main, .down(reason)), at: now)
    default: return nil
    }
  }

  /// Passes an input to the peer. Returns the machine's inputs.
  public mutating func give(_ input: Input, at now: Instant) -> [Input] {
    var result: [Input] = []
    if case .linkChanged(.main, let state) = input {
      if case .up = state { isUp = true } else { isUp = false }
      result.append(input)
    }
    var inputs = [input]
    var effects = Effects()
    while !inputs.isEmpty {
      effects.removeAll()
      peer.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(_, let bytes, let id, _):
          result.append(.received(.main, bytes))
          if let id { inputs.append(.sent(id, failure: nil)) }
        case .event(_, let text): reports.append(text)
        case .resetLink(_, let reason): result += give(.linkChanged(.main, .down(reason)), at: now)
        default: break
        }
      }
    }
    return result
  }
}
