// The TCP endpoint of most peers: one machine per client.

import Glibc
import Protocols

enum PeerServer {
  /// Opens the port and returns its link. `machine` creates the machine of each client.
  static func listen<Peer: Machine>(host: String, port: UInt16, loop: EventLoop, log: ActivityLog, machine: @escaping () -> Peer) throws
    -> String
  {
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    let acceptor = Acceptor()
    acceptor.file = try TCPPort.listen(host: host, port: port, queue: 4096)
    var count = 0
    acceptor.came = { client in
      count += 1
      _ = PeerClient(client, machine: machine(), name: "client \(count)", loop: loop, log: log)
    }
    loop.add(acceptor)
    return Endpoint.url(host: host, port: port == 0 ? TCPPort.number(of: acceptor.file) : port)
  }
}

/// One client, and the machine that serves it until the client is gone or the machine resets the link. The connection owns it.
private final class PeerClient<Peer: Machine>: MachineHost<Peer> {
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

  /// A client that does not read gets no further replies.
  override func reads(_ connection: Connection) -> Bool { connection.sending == nil }

  /// A client that only reads is served until the machine has nothing more to send.
  override func ended(_ connection: Connection, at now: Instant) { give(.wake, at: now) }

  override func settled() {
    guard let connection = connections[.main] else { return }
    // The connection is the only source of events on the loop.
    connection.wake = machine.nextWake
    if connection.hasEnded, connection.hasFailed || connection.wake == nil && connection.sending == nil { end() }
  }

  private func end() {
    close(.main)
    isClosed = true
  }
}
