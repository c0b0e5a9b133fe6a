// The base class that runs a machine (a protocol state machine) on the event loop. It passes inputs to the machine in order, executes the
// effects that the machine returns, and has at most one connection per link. Subclasses open the connections and handle their closing.

import Peers
import Protocols
import ServiceRuntime

class MachineRunner<Peer: Machine>: EventSource, ConnectionOwner {
  final let loop: EventLoop
  final let log: ActivityLog
  final var machine: Peer
  /// The name under which the machine's events are logged.
  final var name: String
  final private(set) var connections: [LinkName: Connection] = [:]
  private var effects = Effects()
  private var inputs: [Input] = []
  private var isFeeding = false

  init(_ machine: Peer, name: String, loop: EventLoop, log: ActivityLog) {
    (self.machine, self.name, self.loop, self.log) = (machine, name, loop, log)
  }

  final func start(restored: [String: [UInt8]] = [:]) {
    feed(.started(restored: restored, wall: WallTime(microseconds: 0)), at: SystemClock.monotonic)
  }

  override func timerFired(at now: Instant) { feed(.wake, at: now) }

  /// Feeds an input to the machine, and executes the resulting effects. Inputs that these effects cause are fed afterwards, in order.
  final func feed(_ input: Input, at now: Instant) {
    inputs.append(input)
    guard !isFeeding else { return }
    isFeeding = true
    defer { isFeeding = false }
    while !inputs.isEmpty, !isClosed {
      effects.removeAll()
      machine.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list { perform(effect, at: now) }
    }
    updateTimer()
  }

  /// Adds a connection that is up, and reports it to the machine.
  @discardableResult
  final func open(_ descriptor: Int32, _ link: LinkName = .main, name: String, readSize: Int = 1024) -> Connection {
    let connection = Connection(descriptor, link: link, name: name, owner: self, readSize: readSize)
    add(connection)
    connectionOpened(connection)
    return connection
  }

  /// Adds a connection that is not up yet.
  final func add(_ connection: Connection) {
    connections[connection.link] = connection
    loop.add(connection)
  }

  final func connectionOpened(_ connection: Connection) {
    log.write(connection.name, "up")
    feed(.linkChanged(connection.link, .up(maximumSend: nil)), at: SystemClock.monotonic)
  }

  final func close(_ link: LinkName, abruptly: Bool = false) {
    guard let connection = connections.removeValue(forKey: link) else { return }
    if !connection.isConnecting { log.write(connection.name, "down") }
    connection.close(abruptly: abruptly)
  }

  final func received(_ bytes: [UInt8], on connection: Connection, at now: Instant) {
    log.write(connection.name, "< \(logText(bytes, printable: (machine as? any Redacting)?.printableCount(of: bytes) ?? bytes.count))")
    feed(.received(connection.link, bytes), at: now)
  }

  // MARK: For subclasses

  /// Executes an effect. Subclasses handle the effects that open and close links.
  func perform(_ effect: Effect, at now: Instant) {
    switch effect {
    case .send(let link, let bytes, let id?, let isSecret):  // machines have one send in flight at a time
      guard let connection = connections[link] else { return feed(.sent(id, failure: "not connected"), at: now) }
      log.write(connection.name, "> \(logText(bytes, printable: isSecret ? 0 : bytes.count))")
      connection.send(bytes, id, at: now)
    case .event(_, let text): log.write(name, text)
    default: break
    }
  }

  /// Sets the timer. Called after every input.
  func updateTimer() { wake = machine.nextWake }

  /// Whether to read from this connection now.
  func mayRead(from connection: Connection) -> Bool { true }

  /// Handles the end of the input: the other side has closed or half-closed the connection.
  func ended(_ connection: Connection, at now: Instant) {}

  /// Formats bytes for the log. Only the first `printable` bytes are shown; the others are secret.
  func logText(_ bytes: [UInt8], printable: Int) -> String { EscapedText.of(bytes, printable: printable) }
}
