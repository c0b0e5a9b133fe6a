// The server of the simulated car: its two ports, the running program, and its restart after Disconnect. Like the original, a program
// accepts one client; later clients wait in the backlog of the kernel.
// Facts: autott.md §1 (listen(1), one accept, video on port + 1), §7 (restart).

import Glibc
import Peers
import Protocols

/// The simulated car with its clients and timers.
final class CarServer: MachineHost<AutoTTCar> {
  private(set) var url = ""
  private let host: String
  private let restart: Nanoseconds
  private let build: () -> AutoTTCar
  private var port: UInt16 = 0
  private let acceptor = Acceptor()
  private let video = Acceptor()
  private var clients = 0
  private var watchers = 0
  /// When the next program starts to listen.
  private var restartsAt: Instant?

  /// Opens both ports. `build` creates the car of each program.
  init(host: String, port: UInt16, restart: Nanoseconds, loop: EventLoop, log: ActivityLog, build: @escaping () -> AutoTTCar) throws {
    (self.host, self.restart, self.build) = (host, restart, build)
    super.init(build(), name: "car", loop: loop, log: log)
    try takePorts(port)
    url = Endpoint.url(host: host, port: self.port)
    acceptor.isOpen = { [unowned self] in machine.isWaiting }
    acceptor.came = { [unowned self] client in
      clients += 1
      open(client, name: "client \(clients)")
    }
    video.came = { [unowned self] client in
      watchers += 1
      open(client, LinkName(stringLiteral: "video-\(watchers)"), name: "video \(watchers)")
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
        Glibc.close(acceptor.file)
        if wanted != 0 || attempt == 64 { throw error }
      }
    }
  }

  override func fire(at now: Instant) {
    if let at = restartsAt, now >= at { startProgram(at: now) }
    super.fire(at: now)
  }

  override func settled() { wake = [machine.nextWake, restartsAt].compactMap(\.self).min() }

  override func perform(_ effect: Effect, at now: Instant) {
    guard case .resetLink(let link, let reason) = effect else { return super.perform(effect, at: now) }
    reset(link, reason, at: now)
  }

  /// The receive buffer of the car may be full.
  override func reads(_ connection: Connection) -> Bool { connection.link != .main || machine.hasRoom }

  /// Reports the end to the car, which as built ignores it and keeps its own socket open. Only video connections are closed.
  override func ended(_ connection: Connection, at now: Instant) {
    log.write(connection.name, "closed by the client")
    give(.linkChanged(connection.link, .down("closed")), at: now)
    if connection.link != .main { close(connection.link) }
  }

  /// Frames and pictures are long.
  override func shown(_ bytes: [UInt8], most: Int) -> String {
    bytes.count > 1024 ? "\(bytes.count) bytes" : super.shown(bytes, most: most)
  }

  private func reset(_ link: LinkName, _ reason: String, at now: Instant) {
    close(link)
    guard link == .main, machine.hasEnded else { return }
    log.write(name, reason)
    for link in connections.keys { close(link) }
    Glibc.close(acceptor.file)
    acceptor.file = -1
    restartsAt = machine.isOff ? nil : now + restart
  }

  /// Starts a new program. While another process uses the port, it retries every second.
  private func startProgram(at now: Instant) {
    do {
      acceptor.file = try TCPPort.listen(host: host, port: port, queue: 1)
    } catch {
      log.write(name, "\(error)")
      restartsAt = now + .second
      return
    }
    restartsAt = nil
    machine = build()
    log.write(name, "a new program listens")
  }
}
