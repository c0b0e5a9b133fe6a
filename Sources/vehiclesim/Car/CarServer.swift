// Where the simulated car stands: its two ports, the program that has them now, and the next one after Disconnect. As the
// original it accepts once for each program; who connects after that is connected, and no more. It must never look into bytes.
// Facts: autott.md §1 (listen(1), one accept, video on port + 1), §7 (restart).

import Glibc
import Peers
import Protocols

/// The car and its clients. What it does by itself, it is woken for here.
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
  /// When the next program listens.
  private var returnsAt: Instant?

  /// Takes both ports, or says why it cannot. `build` makes the car of the next program.
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

  /// The car's own port and the next one; where any will do, until both are free.
  private func takePorts(_ wanted: UInt16) throws {
    if wanted == UInt16.max { throw SimulatorError("port \(wanted) leaves none for the video, which is one above: choose another one") }
    for attempt in 1...64 {
      acceptor.file = try TCPPort.listen(host: host, port: wanted, queue: 1)
      port = TCPPort.number(of: acceptor.file)
      do {
        guard port < UInt16.max else { throw SimulatorError("port \(port) leaves none for the video") }
        video.file = try TCPPort.listen(host: host, port: port + 1, queue: 64)
        return
      } catch {
        close(acceptor.file)
        if wanted != 0 || attempt == 64 { throw error }
      }
    }
  }

  override func woken(at now: Instant) {
    if let at = returnsAt, now >= at { comeBack(at: now) }
    give(.wake, at: now)
  }

  private func open(_ client: Int32, _ link: LinkName, _ who: String) {
    let line = CarConnection(client, link: link, name: who, server: self, log: log)
    lines[link] = line
    loop.add(line)
    log.write(who, "up")
    give(.linkChanged(link, .up(maximumSend: nil)), at: SimulatorClock.now)
  }

  /// The video server notices; the car is only told.
  func clientClosed(_ link: LinkName, at now: Instant) {
    give(.linkChanged(link, .down("closed")), at: now)
    if link != .main { lines.removeValue(forKey: link)?.close() }
  }

  /// There is room for more of what this client sends.
  func reads(_ link: LinkName) -> Bool { link != .main || car.hasRoom }

  /// Hands an input to the car, and what follows from it.
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
          if let line = lines[link] { line.write(bytes, id) } else { inputs.append(.sent(id, failure: "nobody is there")) }
        case .event(_, let text): log.write("car", text)
        case .resetLink(let link, let reason): reset(link, reason, at: now)
        default: break
        }
      }
    }
    wake = [car.nextWake, returnsAt].compactMap(\.self).min()
  }

  private func reset(_ link: LinkName, _ reason: String, at now: Instant) {
    lines.removeValue(forKey: link)?.close()
    guard link == .main, car.hasEnded else { return }
    log.write("car", reason)
    for line in lines.values { line.close() }
    lines = [:]
    close(acceptor.file)
    acceptor.file = -1
    returnsAt = car.isOff ? nil : now + restart
  }

  /// A new program; while its port is taken by somebody else it tries again.
  private func comeBack(at now: Instant) {
    do {
      acceptor.file = try TCPPort.listen(host: host, port: port, queue: 1)
    } catch {
      log.write("car", "\(error)")
      returnsAt = now + .second
      return
    }
    returnsAt = nil
    car = build()
    log.write("car", "a new program listens")
  }
}
