// Where the simulated car stands: its two ports, the program that has them now, and the next one after Disconnect. As the
// original it accepts once for each program; who connects after that is connected, and no more. It must never look into bytes.
// Facts: autott.md §1 (listen(1), one accept, video on port + 1), §7 (restart).

import Glibc
import Peers
import Protocols

/// The car and its clients. What it does by itself, it is woken for here.
final class CarGarage: Watched {
  private(set) var url = ""
  private let host: String
  private let restart: Nanoseconds
  private let loop: Loop
  private let manner: Manner
  private let build: () -> AutoTTCar
  private var car: AutoTTCar
  private var port: UInt16 = 0
  private let door = Door()
  private let video = Door()
  private var lines: [LinkName: CarLine] = [:]
  private var effects = Effects()
  private var inputs: [Input] = []
  private var isFeeding = false
  private var clients = 0
  private var watchers = 0
  /// When the next program listens.
  private var returnsAt: Instant?

  /// Takes both ports, or says why it cannot. `build` makes the car of the next program.
  init(host: String, port: UInt16, restart: Nanoseconds, loop: Loop, manner: Manner, build: @escaping () -> AutoTTCar) throws {
    (self.host, self.restart, self.loop, self.manner, self.build) = (host, restart, loop, manner, build)
    car = build()
    super.init()
    try takePorts(port)
    url = Endpoint.url(host: host, port: self.port)
    door.isOpen = { [unowned self] in car.isWaiting }
    door.came = { [unowned self] client in
      clients += 1
      open(client, .main, "client \(clients)")
    }
    video.came = { [unowned self] client in
      watchers += 1
      open(client, LinkName(stringLiteral: "video-\(watchers)"), "video \(watchers)")
    }
    loop.add(self)
    loop.add(door)
    loop.add(video)
  }

  /// The car's own port and the next one; where any will do, until both are free.
  private func takePorts(_ wanted: UInt16) throws {
    if wanted == UInt16.max { throw Failure("port \(wanted) leaves none for the video, which is one above: choose another one") }
    for attempt in 1...64 {
      door.file = try TCPPort.listen(host: host, port: wanted, queue: 1)
      port = TCPPort.number(of: door.file)
      do {
        guard port < UInt16.max else { throw Failure("port \(port) leaves none for the video") }
        video.file = try TCPPort.listen(host: host, port: port + 1, queue: 64)
        return
      } catch {
        close(door.file)
        if wanted != 0 || attempt == 64 { throw error }
      }
    }
  }

  override func woken(at now: Instant) {
    if let at = returnsAt, now >= at { comeBack(at: now) }
    give(.wake, at: now)
  }

  private func open(_ client: Int32, _ link: LinkName, _ who: String) {
    let line = CarLine(client, link: link, name: who, garage: self, manner: manner)
    lines[link] = line
    loop.add(line)
    manner.tell(who, "up")
    give(.linkChanged(link, .up(maximumSend: nil)), at: Clock.now)
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
        case .event(_, let text): manner.tell("car", text)
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
    manner.tell("car", reason)
    for line in lines.values { line.close() }
    lines = [:]
    close(door.file)
    door.file = -1
    returnsAt = car.isOff ? nil : now + restart
  }

  /// A new program; while its port is taken by somebody else it tries again.
  private func comeBack(at now: Instant) {
    do {
      door.file = try TCPPort.listen(host: host, port: port, queue: 1)
    } catch {
      manner.tell("car", "\(error)")
      returnsAt = now + .second
      return
    }
    returnsAt = nil
    car = build()
    manner.tell("car", "a new program listens")
  }
}
