// The server of the simulated car: its two ports, the running program, and its restart after Disconnect. Like the original, a program
// accepts one client; later clients wait in the backlog of the kernel.
// Facts: autott.md §1 (listen(1), one accept, video on port + 1), §7 (restart).

import Glibc
import Peers
import Protocols

/// The simulated car with its clients and timers.
final class CarServer: EventSource {
  private(set) var url = ""
  private let host: String
  private let restart: Nanoseconds
  private let loop: EventLoop
  private let log: ActivityLog
  private let build: () -> AutoTTCar
  private var car: AutoTTCar
  private var port: UInt16 = 0
  private let acceptor = Acceptor()
  private let video = Acceptor()
  private var lines: [LinkName: CarConnection] = [:]
  private var effects = Effects()
  private var inputs: [Input] = []
  private var isFeeding = false
  private var clients = 0
  private var watchers = 0
  /// When the next program starts to listen.
  private var restartsAt: Instant?

  /// Opens both ports. `build` creates the car of each program.
  init(host: String, port: UInt16, restart: Nanoseconds, loop: EventLoop, log: ActivityLog, build: @escaping () -> AutoTTCar) throws {
    (self.host, self.restart, self.loop, self.log, self.build) = (host, restart, loop, log, build)
    car = build()
    super.init()
    try takePorts(port)
    url = Endpoint.url(host: host, port: self.port)
    acceptor.isOpen = { [unowned self] in car.isWaiting }
    acceptor.came = { [unowned self] client in
      clients += 1
      open(client, .main, "client \(clients)")
    }
    video.came = { [unowned self] client in
      watchers += 1
      open(client, LinkName(stringLiteral: "video-\(watchers)"), "video \(watchers)")
    }
    loop.add(self)
    loop.add(acceptor)
    loop.add(video)
  }

  /// Opens the wanted port and the next one. With port 0 it retries until both are free.
  private func takePorts(_ wanted: UInt16) throws {
    if wanted == UInt16.max { throw SimulatorError("no port for the video above port \(wanted): choose a lower port") }
    for attempt in 1...64 {
      acceptor.file = try TCPPort.listen(host: host, port: wanted, queue: 1)
      port = TCPPort.number(of: acceptor.file)
      do {
        guard port < UInt16.max else { throw SimulatorError("no port for the video above port \(port)") }
        video.file = try TCPPort.listen(host: host, port: port + 1, queue: 64)
        return
      } catch {
        close(acceptor.file)
        if wanted != 0 || attempt == 64 { throw error }
      }
    }
  }

  override func woken(at now: Instant) {
    if let at = restartsAt, now >= at { startProgram(at: now) }
    give(.wake, at: now)
  }

  private func open(_ client: Int32, _ link: LinkName, _ who: String) {
    let line = CarConnection(client, link: link, name: who, server: self, log: log)
    lines[link] = line
    loop.add(line)
    log.write(who, "up")
    give(.linkChanged(link, .up(maximumSend: nil)), at: SimulatorClock.now)
  }

  /// Reports the close to the car. Only video connections are closed: the car keeps its own socket open.
  func clientClosed(_ link: LinkName, at now: Instant) {
    give(.linkChanged(link, .down("closed")), at: now)
    if link != .main { lines.removeValue(forKey: link)?.close() }
  }

  /// Whether the car reads from this client: its receive buffer has space.
  func reads(_ link: LinkName) -> Bool { link != .main || car.hasRoom }

  /// Feeds an input to the car, and performs its effects.
  func give(_ input: Input, at now: Instant) {
    inputs.append(input)
    guard !isFeeding else { return }
    isFeeding = true
    defer { isFeeding = false }
    while !inputs.isEmpty {
      effects.removeAll()
      car.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(let link, let bytes, let id?, _):
          if let line = lines[link] { line.write(bytes, id) } else { inputs.append(.sent(id, failure: "not connected")) }
        case .event(_, let text): log.write("car", text)
        case .resetLink(let link, let reason): reset(link, reason, at: now)
        default: break
        }
      }
    }
    wake = [car.nextWake, restartsAt].compactMap(\.self).min()
  }

  private func reset(_ link: LinkName, _ reason: String, at now: Instant) {
    lines.removeValue(forKey: link)?.close()
    guard link == .main, car.hasEnded else { return }
    log.write("car", reason)
    for line in lines.values { line.close() }
    lines = [:]
    close(acceptor.file)
    acceptor.file = -1
    restartsAt = car.isOff ? nil : now + restart
  }

  /// Starts a new program. While another process uses the port, it retries every second.
  private func startProgram(at now: Instant) {
    do {
      acceptor.file = try TCPPort.listen(host: host, port: port, queue: 1)
    } catch {
      log.write("car", "\(error)")
      restartsAt = now + .second
      return
    }
    restartsAt = nil
    car = build()
    log.write("car", "a new program listens")
  }
}
