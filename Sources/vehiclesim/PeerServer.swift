// The TCP endpoint of most simulated devices: one machine per client.

import Glibc
import Protocols
import ServiceRuntime

enum PeerServer {
  /// Listens on the port and returns the link URL. `machine` creates the machine of each client.
  static func listen<Peer: Machine>(host: String, port: UInt16, loop: EventLoop, log: ActivityLog, machine: @escaping () -> Peer) throws
    -> String
  {
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    let acceptor = Acceptor()
    acceptor.file = try TCPPort.listen(host: host, port: port, backlog: 4096)
    var count = 0
    acceptor.accepted = { client in
      count += 1
      _ = PeerClient(client, machine: machine(), name: "client \(count)", loop: loop, log: log)
    }
    loop.add(acceptor)
    return Endpoint.url(host: host, port: port == 0 ? TCPPort.port(of: acceptor.file) : port)
  }
}

/// A client and its machine. They exist until the client closes the connection or the machine resets the link. The connection retains this
/// object.
private final class PeerClient<Peer: Machine>: MachineRunner<Peer> {
  init(_ file: Int32, machine: Peer, name: String, loop: EventLoop, log: ActivityLog) {
    super.init(machine, name: name, loop: loop, log: log)
    start()
    open(file, name: name)
  }

  override func perform(_ effect: Effect, at now: Instant) {
    guard case .resetLink = effect else { return super.perform(effect, at: now) }
    connections[.main]?.discardInput()
    end()
  }

  /// Reads nothing while a reply is being sent: a client that does not read gets no further replies.
  override func mayRead(from connection: Connection) -> Bool { connection.sending == nil }

  /// Continues to serve a client that has closed its sending direction, until the machine has nothing more to send.
  override func ended(_ connection: Connection, at now: Instant) { feed(.wake, at: now) }

  override func updateTimer() {
    guard let connection = connections[.main] else { return }
    // This object is not registered with the event loop, so it uses the connection's timer.
    connection.wake = machine.nextWake
    if connection.hasEnded, connection.hasFailed || connection.wake == nil && connection.sending == nil { end() }
  }

  private func end() {
    close(.main)
    isClosed = true
  }
}
