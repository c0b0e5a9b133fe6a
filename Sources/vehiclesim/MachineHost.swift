// The base of everything that runs a machine on the event loop: it passes on inputs in order, carries out effects, and has at most one
// connection on each link. Subclasses open the connections and decide what their end means.

import Peers
import Protocols

class MachineHost<Peer: Machine>: EventSource, ConnectionOwner {
  final let loop: EventLoop
  final let log: ActivityLog
  final var machine: Peer
  /// The source of the machine's events in the log.
  final var name: String
  final private(set) var connections: [LinkName: Connection] = [:]
  private var effects = Effects()
  private var inputs: [Input] = []
  private var isFeeding = false

  init(_ machine: Peer, name: String, loop: EventLoop, log: ActivityLog) {
    (self.machine, self.name, self.loop, self.log) = (machine, name, loop, log)
  }

  final func start(restored: [String: [UInt8]] = [:]) {
    give(.started(restored: restored, wall: WallTime(microseconds: 0)), at: SimulatorClock.now)
  }

  final override func woken(at now: Instant) { fire(at: now) }

  /// Feeds an input to the machine, and carries out its effects. Inputs that arise meanwhile follow in order.
  final func give(_ input: Input, at now: Instant) {
    inputs.append(input)
    guard !isFeeding else { return }
    isFeeding = true
    defer { isFeeding = false }
    while !inputs.isEmpty, !isClosed {
      effects.removeAll()
      machine.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list { perform(effect, at: now) }
    }
    settled()
  }

  /// Adds a connection that is up, and reports it to the machine.
  @discardableResult
  final func open(_ file: Int32, _ link: LinkName = .main, name: String, chunk: Int = 1024) -> Connection {
    let connection = Connection(file, link: link, name: name, owner: self, chunk: chunk)
    add(connection)
    cameUp(connection)
    return connection
  }

  /// Adds a connection that is not up yet.
  final func add(_ connection: Connection) {
    connections[connection.link] = connection
    loop.add(connection)
  }

  final func cameUp(_ connection: Connection) {
    log.write(connection.name, "up")
    give(.linkChanged(connection.link, .up(maximumSend: nil)), at: SimulatorClock.now)
  }

  final func close(_ link: LinkName, abruptly: Bool = false) {
    guard let connection = connections.removeValue(forKey: link) else { return }
    if !connection.isConnecting { log.write(connection.name, "down") }
    connection.close(abruptly: abruptly)
  }

  final func received(_ bytes: [UInt8], on connection: Connection, at now: Instant) {
    log.write(connection.name, "< \(shown(bytes, most: (machine as? any Redacting)?.printableCount(of: bytes) ?? bytes.count))")
    give(.received(connection.link, bytes), at: now)
  }

  // MARK: What subclasses change

  /// Carries out an effect.
  func perform(_ effect: Effect, at now: Instant) {
    switch effect {
    case .send(let link, let bytes, let id?, let isSecret):  // peers have one send in flight at a time
      guard let connection = connections[link] else { return give(.sent(id, failure: "not connected"), at: now) }
      log.write(connection.name, "> \(shown(bytes, most: isSecret ? 0 : bytes.count))")
      connection.send(bytes, id, at: now)
    case .event(_, let text): log.write(name, text)
    default: break
    }
  }

  /// Sets the time of the next wake; called after every input.
  func settled() { wake = machine.nextWake }

  /// A time that `settled` has set is reached.
  func fire(at now: Instant) { give(.wake, at: now) }

  /// Whether bytes of this connection are read now.
  func reads(_ connection: Connection) -> Bool { true }

  /// The other side has closed the connection or its sending direction.
  func ended(_ connection: Connection, at now: Instant) {}

  /// Bytes for the log; those beyond the first `most` are secret.
  func shown(_ bytes: [UInt8], most: Int) -> String { Readable.text(bytes, most: most) }
}
