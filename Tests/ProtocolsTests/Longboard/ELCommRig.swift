// The machine and the simulated board in virtual time, joined by a link that takes no time unless a test says otherwise. One send is
// outstanding at most.

import MachineTesting
import Peers
import Testing

@testable import Protocols

typealias ELCommRig = Host<ELCommMachine, BoardLink>

struct BoardLink: LinkedSurroundings {
  var board: ArduinoBoard
  /// The delay after which the link accepts a write; nil: never.
  var linkDelay: Nanoseconds? = 0
  /// Whether data from the board is lost.
  var isBoardMute = false
  /// Whether data from the board is buffered on its way.
  var isStalled = false
  private(set) var isUp = false
  fileprivate(set) var sends: [(at: Instant, bytes: [UInt8])] = []
  private(set) var arrivals: [Instant] = []
  private var pending: [(at: Instant, id: SendID)] = []
  private var incoming: [[UInt8]] = []
  private var isDisconnecting = false

  init(_ board: ArduinoBoard) { self.board = board }

  var sent: String { sends.map { String(decoding: $0.bytes, as: UTF8.self) }.joined() }

  private var hasArrival: Bool { !incoming.isEmpty && !isStalled }

  var nextWake: Instant? {
    hasArrival || isDisconnecting ? .min : [pending.first?.at, board.nextWake].compactMap(\.self).min()
  }

  mutating func wake(at now: Instant) -> [Input] {
    if hasArrival {
      arrivals.append(now)
      let bytes = incoming.removeFirst()
      return isUp ? [.received(.main, bytes)] : []
    }
    if isDisconnecting {
      isDisconnecting = false
      return change(.down("gone"), at: now)
    }
    if let first = pending.first, first.at <= now { return [.sent(pending.removeFirst().id, failure: nil)] }
    giveBoard(.wake, at: now)
    return []
  }

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: 20), at: now) }

  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    if case .up = state { isUp = true } else { isUp = false }
    pending = []
    giveBoard(.linkChanged(.main, state), at: now)
    return [.linkChanged(.main, state)]
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, let id, _):
      #expect(isUp && pending.isEmpty, "a send over a link that is down or busy")
      sends.append((now, bytes))
      pending.append((linkDelay.map { now + $0 } ?? .max, id ?? 0))
      if linkDelay != nil { giveBoard(.received(.main, bytes), at: now) }
    case .resetLink: (isUp, pending) = (false, [])
    default: return nil
    }
    return []
  }

  /// Gives the board an input.
  mutating func giveBoard(_ input: Input, at now: Instant) {
    var inputs = [input]
    while !inputs.isEmpty {
      var effects = Effects()
      board.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(_, let bytes, let id?, _):
          if isUp, !isBoardMute { incoming.append(bytes) }
          inputs.append(.sent(id, failure: nil))
        case .resetLink: isDisconnecting = true
        default: break
        }
      }
    }
  }

  /// Drops the writes in flight, because the link has closed.
  mutating func forgetSends() { pending = [] }
}

extension ELCommRig {
  init(_ options: [String: Value] = [:], dialect: ArduinoBoard.Dialect = .asBuilt, faults: String..., isInstant: Bool = false) throws {
    let board = ArduinoBoard(dialect, isInstant: isInstant, faults: try faults.map { try BoardFault($0) })
    self.init(try ELCommMachine(Setup(options: options)), BoardLink(board))
  }

  /// Kills the daemon, and starts the next one with the same disk.
  mutating func restart(_ options: [String: Value] = [:], for time: Nanoseconds = 0) throws {
    _ = surroundings.change(.down("gone"), at: now)
    replace(try ELCommMachine(Setup(options: options)))
    surroundings.sends = []
    start(for: time)
  }

  /// Kills the daemon, and starts one with an empty disk after this time. Data that the board sends meanwhile is buffered, or lost as by
  /// a Bluetooth module without a connection.
  mutating func startFresh(after time: Nanoseconds, isBuffered: Bool, for rest: Nanoseconds) throws {
    replace(try ELCommMachine(Setup()))
    surroundings.isStalled = true
    if !isBuffered { disconnect() }
    run(for: time)
    surroundings.isStalled = false
    replace(try ELCommMachine(Setup()))
    surroundings.sends = []
    surroundings.forgetSends()
    disk = [:]
    give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    if isBuffered { give(.linkChanged(.main, .up(maximumSend: 20))) } else { connect(maximumSend: 20) }
    run(for: rest)
  }

  /// Kills the daemon; the link stays open.
  mutating func kill() {
    surroundings.isStalled = true
    if let idle = try? ELCommMachine(Setup()) { machine = idle }
    surroundings.forgetSends()
  }

  /// Sends the board bytes that are not from the daemon.
  mutating func sendToBoard(_ text: String) { surroundings.giveBoard(.received(.main, Array(text.utf8)), at: now) }
  mutating func receive(_ text: String) { give(.received(.main, Array(text.utf8))) }
  mutating func buzz(_ arguments: [String: Value] = [:], id: CommandID = 1) {
    perform(.run(action: 0, arguments: arguments), id: id)
  }
}
