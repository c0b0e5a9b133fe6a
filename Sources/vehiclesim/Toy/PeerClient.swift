// A machine that opens its own connections, and its links by name. A failed attempt is not repeated: machines retry themselves.
//
//   openLink, listen     replace the connection of the link
//   closeLink            close the connection and its listening socket
//   resetLink            the same, with a TCP reset

import Glibc
import Protocols

final class PeerClient: EventSource {
  private var machine: any Machine
  private let name: String
  private let card: CardFolder?
  private let loop: EventLoop
  private let log: ActivityLog
  /// Addresses by URL. The first one is tried next.
  private var addresses: [String: [TCPAddress]] = [:]
  private var lines: [LinkName: ClientConnection] = [:]
  /// The last failure by URL: a repeated failure is logged once.
  private var reportedFailures: [String: String] = [:]
  private var acceptors: [LinkName: Acceptor] = [:]
  private var effects = Effects()
  private var inputs: [Input] = []
  private var isFeeding = false

  /// Resolves the URLs that the machine will connect to, and starts the machine with the files of its card.
  init(_ machine: any Machine, name: String, reaches urls: [String], card: CardFolder?, loop: EventLoop, log: ActivityLog) throws {
    (self.machine, self.name, self.card, self.loop, self.log) = (machine, name, card, loop, log)
    super.init()
    for url in urls {
      guard case .tcp(let host, let port) = try Endpoint(url) else { continue }
      addresses[url] = try TCPAddress.find(host: host, port: port)
    }
    loop.add(self)
    give(.started(restored: try card?.contents() ?? [:], wall: WallTime(microseconds: 0)), at: SimulatorClock.now)
  }

  override func woken(at now: Instant) { give(.wake, at: now) }

  /// Feeds an input to the machine, and performs its effects.
  func give(_ input: Input, at now: Instant) {
    inputs.append(input)
    guard !isFeeding else { return }
    isFeeding = true
    defer { isFeeding = false }
    while !inputs.isEmpty {
      effects.removeAll()
      machine.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list { perform(effect, at: now) }
    }
    wake = machine.nextWake
  }

  private func perform(_ effect: Effect, at now: Instant) {
    switch effect {
    case .send(let link, let bytes, let id?, _):
      if let line = lines[link] { line.write(bytes, id) } else { inputs.append(.sent(id, failure: "not connected")) }
    case .event(_, let text): log.write(name, text)
    case .store(let key, let bytes):
      let failure = card?.store(key, bytes)
      if let failure { Console.writeError(failure) }
      inputs.append(.stored(key: key, failure: failure))
    case .openLink(let link, let url):
      end(link)
      dial(link, url)
    case .listen(let link, let address, _):
      end(link)
      listen(link, address)
    case .closeLink(let link): end(link)
    case .resetLink(let link, _): end(link, abruptly: true)
    default: break
    }
  }

  private func dial(_ link: LinkName, _ url: String) {
    guard let address = addresses[url]?.first else { return inputs.append(.linkChanged(link, .down("no address for \(url)"))) }
    guard let file = address.dial() else {
      return failed(link, url, String(cString: strerror(errno)))
    }
    let line = ClientConnection(file, link: link, isConnecting: true, client: self, log: log)
    line.failed = { [unowned self] reason in
      lines[link] = nil
      failed(link, url, reason)
      give(.wake, at: SimulatorClock.now)
    }
    line.connected = { [unowned self] in reportedFailures[url] = nil }
    lines[link] = line
    loop.add(line)
  }

  private func failed(_ link: LinkName, _ url: String, _ reason: String) {
    if reportedFailures.updateValue(reason, forKey: url) != reason { log.write(link.description, "cannot reach \(url): \(reason)") }
    if let first = addresses[url]?.first { addresses[url] = (addresses[url]?.dropFirst() ?? []) + [first] }
    inputs.append(.linkChanged(link, .down(reason)))
  }

  private func listen(_ link: LinkName, _ address: String) {
    do {
      guard case .tcp(let host, let port) = try Endpoint("tcp:\(address)") else { return }
      let acceptor = Acceptor()
      acceptor.file = try TCPPort.listen(host: host, port: port, queue: 1)
      acceptor.isOpen = { [unowned self] in lines[link] == nil }
      acceptor.came = { [unowned self] client in
        let line = ClientConnection(client, link: link, isConnecting: false, client: self, log: log)
        lines[link] = line
        loop.add(line)
        log.write(link.description, "up")
        give(.linkChanged(link, .up(maximumSend: nil)), at: SimulatorClock.now)
      }
      acceptors[link] = acceptor
      loop.add(acceptor)
    } catch {
      inputs.append(.linkChanged(link, .down("\(error)")))
    }
  }

  private func end(_ link: LinkName, abruptly: Bool = false) {
    lines.removeValue(forKey: link)?.close(abruptly: abruptly)
    guard let acceptor = acceptors.removeValue(forKey: link) else { return }
    close(acceptor.file)
    acceptor.isClosed = true
  }

  /// Handles a close by the other side. The machine may have replaced the connection already.
  func ended(_ line: ClientConnection, _ link: LinkName, at now: Instant) {
    guard lines[link] === line else { return }
    lines.removeValue(forKey: link)?.close(abruptly: false)
    give(.linkChanged(link, .down("closed by the other side")), at: now)
  }
}
