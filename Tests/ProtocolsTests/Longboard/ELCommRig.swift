// The machine and the simulated board in virtual time, joined by a link that takes no time unless a test says otherwise. One send is
// outstanding at most.

import MachineTesting
import Peers
import Testing

@testable import Protocols

typealias ELCommRig = Host<ELCommMachine, BoardLink>

struct BoardLink: LinkedSurroundings {
  var board: ArduinoBoard
  /// The link takes a send this much later; nil: never.
  var linkDelay: Nanoseconds? = 0
  /// Nothing of the board arrives.
  var isBoardMute = false
  /// What the board says waits somewhere on its way.
  var isStalled = false
  private(set) var isUp = false
  fileprivate(set) var sends: [(at: Instant, bytes: [UInt8])] = []
  private(set) var arrivals: [Instant] = []
  private var pending: [(at: Instant, id: SendID)] = []
  private var coming: [[UInt8]] = []
  private var isHangingUp = false

  init(_ board: ArduinoBoard) { self.board = board }

  var sent: String { sends.map { String(decoding: $0.bytes, as: UTF8.self) }.joined() }

  private var hasArrival: Bool { !coming.isEmpty && !isStalled }

  var nextWake: Instant? {
    hasArrival || isHangingUp ? .min : [pending.first?.at, board.nextWake].compactMap(\.self).min()
  }

  mutating func wake(at now: Instant) -> [Input] {
    if hasArrival {
      arrivals.append(now)
      let bytes = coming.removeFirst()
      return isUp ? [.received(.main, bytes)] : []
    }
    if isHangingUp {
      isHangingUp = false
      return change(.down("gone"), at: now)
    }
    if let first = pending.first, first.at <= now { return [.sent(pending.removeFirst().id, failure: nil)] }
    tell(.wake, at: now)
    return []
  }

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: 20), at: now) }

  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    if case .up = state { isUp = true } else { isUp = false }
    pending = []
    tell(.linkChanged(.main, state), at: now)
    return [.linkChanged(.main, state)]
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, let id, _):
      #expect(isUp && pending.isEmpty, "a send over no link, or a second one")
      sends.append((now, bytes))
      pending.append((linkDelay.map { now + $0 } ?? .max, id ?? 0))
      if linkDelay != nil { tell(.received(.main, bytes), at: now) }
    case .resetLink: (isUp, pending) = (false, [])
    default: return nil
    }
    return []
  }

  /// The board takes an input.
  mutating func tell(_ input: Input, at now: Instant) {
    var inputs = [input]
    while !inputs.isEmpty {
      var effects = Effects()
      board.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(_, let bytes, let id?, _):
          if isUp, !isBoardMute { coming.append(bytes) }
          inputs.append(.sent(id, failure: nil))
        case .resetLink: isHangingUp = true
        default: break
        }
      }
    }
  }

  /// The link has closed with what it was given.
  mutating func forgetSends() { pending = [] }
}

extension ELCommRig {
  init(_ options: [String: Value] = [:], dialect: ArduinoBoard.Dialect = .asBuilt, faults: String..., isInstant: Bool = false) throws {
    let board = ArduinoBoard(dialect, isInstant: isInstant, faults: try faults.map { try BoardFault($0) })
    self.init(try ELCommMachine(Setup(options: options)), BoardLink(board))
  }

  /// A daemon that was killed, and the next one with what the disk has.
  mutating func restart(_ options: [String: Value] = [:], for time: Nanoseconds = 0) throws {
    _ = around.change(.down("gone"), at: now)
    replace(try ELCommMachine(Setup(options: options)))
    around.sends = []
    start(for: time)
  }

  /// A daemon that was killed, and after this time one that knows nothing of it. What the board says meanwhile waits on its
  /// way, or is lost as on a Bluetooth module that nobody is connected to.
  mutating func startFresh(after time: Nanoseconds, isBuffered: Bool, for rest: Nanoseconds) throws {
    replace(try ELCommMachine(Setup()))
    around.isStalled = true
    if !isBuffered { disconnect() }
    run(for: time)
    around.isStalled = false
    replace(try ELCommMachine(Setup()))
    around.sends = []
    around.forgetSends()
    disk = [:]
    give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    if isBuffered { give(.linkChanged(.main, .up(maximumSend: 20))) } else { connect(maximumSend: 20) }
    run(for: rest)
  }

  /// The daemon is gone; the link stays open.
  mutating func kill() {
    around.isStalled = true
    if let idle = try? ELCommMachine(Setup()) { machine = idle }
    around.forgetSends()
  }

  /// Bytes that come to the board from elsewhere.
  mutating func tellBoard(_ text: String) { around.tell(.received(.main, Array(text.utf8)), at: now) }
  mutating func hear(_ text: String) { give(.received(.main, Array(text.utf8))) }
  mutating func buzz(_ arguments: [String: Value] = [:], id: CommandID = 1) {
    perform(.run(action: 0, arguments: arguments), id: id)
  }
}
