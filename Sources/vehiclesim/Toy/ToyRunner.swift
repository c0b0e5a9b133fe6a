// Runs a simulated toy and its connections. Retrying a failed connection attempt is the task of the toy, not of this class.
//
//   openLink, listen     replace the connection of the link
//   closeLink            close the connection and its listening socket
//   resetLink            the same, with a TCP reset

import Glibc
import Peers
import Protocols
import ServiceRuntime

final class ToyRunner: MachineRunner<TriviaToy> {
  private let sdCard: SDCardFolder?
  /// Resolved addresses by URL. The next attempt uses the first address.
  private var addresses: [String: [TCPAddress]] = [:]
  /// The last failure by URL, so that a repeated failure is logged only once.
  private var reportedFailures: [String: String] = [:]
  private var acceptors: [LinkName: Acceptor] = [:]
  private static let readSize = 16_384

  /// Resolves the hosts of the URLs to which the toy will connect, and starts the toy with the files on its SD card.
  init(_ toy: TriviaToy, connectsTo urls: [String], sdCard: SDCardFolder?, loop: EventLoop, log: ActivityLog) throws {
    self.sdCard = sdCard
    super.init(toy, name: "toy", loop: loop, log: log)
    for url in urls {
      guard case .tcp(let host, let port) = try Endpoint(url) else { continue }
      addresses[url] = try TCPAddress.resolve(host: host, port: port)
    }
    loop.add(self)
    start(restored: try sdCard?.contents() ?? [:])
  }

  override func perform(_ effect: Effect, at now: Instant) {
    switch effect {
    case .store(let key, let bytes):
      let failure = sdCard?.store(key, bytes)
      if let failure { Console.writeError(failure) }
      feed(.stored(key: key, failure: failure), at: now)
    case .openLink(let link, let url):
      end(link)
      connect(link, url, at: now)
    case .listen(let link, let address, _):
      end(link)
      listen(link, address, at: now)
    case .closeLink(let link): end(link)
    case .resetLink(let link, _): end(link, abruptly: true)
    default: super.perform(effect, at: now)
    }
  }

  private func connect(_ link: LinkName, _ url: String, at now: Instant) {
    guard let address = addresses[url]?.first else { return feed(.linkChanged(link, .down("no address for \(url)")), at: now) }
    guard let file = address.startConnecting() else { return connectFailed(link, url, String(cString: strerror(errno)), at: now) }
    add(
      Connection(file, link: link, name: link.description, owner: self, readSize: Self.readSize) { [unowned self] failure in
        if let failure {
          close(link)
          return connectFailed(link, url, failure, at: SystemClock.monotonic)
        }
        reportedFailures[url] = nil
        if let connection = connections[link] { connectionOpened(connection) }
      })
  }

  /// Logs and reports a failed attempt. The next attempt uses the next address.
  private func connectFailed(_ link: LinkName, _ url: String, _ reason: String, at now: Instant) {
    if reportedFailures.updateValue(reason, forKey: url) != reason { log.write(link.description, "cannot reach \(url): \(reason)") }
    if let first = addresses[url]?.first { addresses[url] = (addresses[url]?.dropFirst() ?? []) + [first] }
    feed(.linkChanged(link, .down(reason)), at: now)
  }

  private func listen(_ link: LinkName, _ address: String, at now: Instant) {
    do {
      guard case .tcp(let host, let port) = try Endpoint("tcp:\(address)") else { return }
      let acceptor = Acceptor()
      acceptor.file = try TCPPort.listen(host: host, port: port, backlog: 1)
      acceptor.canAccept = { [unowned self] in connections[link] == nil }
      acceptor.accepted = { [unowned self] client in open(client, link, name: link.description, readSize: Self.readSize) }
      acceptors[link] = acceptor
      loop.add(acceptor)
    } catch {
      feed(.linkChanged(link, .down("\(error)")), at: now)
    }
  }

  /// Closes the connection and the listening socket of a link.
  private func end(_ link: LinkName, abruptly: Bool = false) {
    close(link, abruptly: abruptly)
    guard let acceptor = acceptors.removeValue(forKey: link) else { return }
    Glibc.close(acceptor.file)
    acceptor.isClosed = true
  }

  /// Reports a send in flight as failed. Then closes the connection, unless the toy has replaced it in response to the report.
  override func ended(_ connection: Connection, at now: Instant) {
    let (link, reason) = (connection.link, "closed by peer")
    log.write(connection.name, reason)
    if let id = connection.sending { feed(.sent(id, failure: reason), at: now) }
    guard connections[link] === connection else { return }
    close(link)
    feed(.linkChanged(link, .down(reason)), at: now)
  }
}
