// The server of the simulated car: its two ports, the running program, and the restart of the program after Disconnect. Like the original,
// a program accepts one phone; later phones wait in the kernel's backlog. The video server listens on the next port.
// Source: TCP.py and mainLoop.py of task123/AutoTT.

import Glibc
import Peers
import Protocols
import ServiceRuntime

/// The simulated car with its clients and timers.
final class CarServer: MachineRunner<AutoTTCar> {
  private(set) var url = ""
  private let host: String
  /// The time between two runs of the program, during which the car does not listen.
  private let restartDelay: Nanoseconds
  private let makeCar: () -> AutoTTCar
  private var port: UInt16 = 0
  private let acceptor = Acceptor()
  private let video = Acceptor()
  private var clientCount = 0
  private var videoClientCount = 0
  /// When the next program starts to listen.
  private var restartsAt: Instant?

  /// Opens both ports. `makeCar` creates the car of each program.
  init(host: String, port: UInt16, restartDelay: Nanoseconds, loop: EventLoop, log: ActivityLog, makeCar: @escaping () -> AutoTTCar) throws
  {
    (self.host, self.restartDelay, self.makeCar) = (host, restartDelay, makeCar)
    super.init(makeCar(), name: "car", loop: loop, log: log)
    try openPorts(port)
    url = Endpoint.url(host: host, port: self.port)
    acceptor.canAccept = { [unowned self] in machine.isWaiting }
    acceptor.accepted = { [unowned self] client in
      clientCount += 1
      open(client, name: "client \(clientCount)")
    }
    video.accepted = { [unowned self] client in
      videoClientCount += 1
      open(client, LinkName(stringLiteral: "video-\(videoClientCount)"), name: "video \(videoClientCount)")
    }
    loop.add(self)
    loop.add(acceptor)
    loop.add(video)
  }

  /// Opens the requested port and the next one. With port 0, tries up to 64 times to find two free ports in a row.
  private func openPorts(_ requested: UInt16) throws {
    if requested == UInt16.max { throw SimulatorError("no port for the video above port \(requested): choose a lower port") }
    for attempt in 1...64 {
      acceptor.file = try TCPPort.listen(host: host, port: requested, backlog: 1)
      port = TCPPort.port(of: acceptor.file)
      do {
        guard port < UInt16.max else { throw SimulatorError("no port for the video above port \(port)") }
        video.file = try TCPPort.listen(host: host, port: port + 1, backlog: 64)
        return
      } catch {
        Glibc.close(acceptor.file)
        if requested != 0 || attempt == 64 { throw error }
      }
    }
  }

  override func timerFired(at now: Instant) {
    if let restart = restartsAt, now >= restart { startProgram(at: now) }
    super.timerFired(at: now)
  }

  override func updateTimer() { wake = [machine.nextWake, restartsAt].compactMap(\.self).min() }

  override func perform(_ effect: Effect, at now: Instant) {
    guard case .resetLink(let link, let reason) = effect else { return super.perform(effect, at: now) }
    reset(link, reason, at: now)
  }

  /// Reads from the phone only while the receive buffer of the car has space.
  override func mayRead(from connection: Connection) -> Bool { connection.link != .main || machine.hasRoom }

  /// Reports the end to the car. Closes only video connections: the car decides whether to close the connection of the phone.
  override func ended(_ connection: Connection, at now: Instant) {
    log.write(connection.name, "closed by the client")
    feed(.linkChanged(connection.link, .down("closed")), at: now)
    if connection.link != .main { close(connection.link) }
  }

  /// Abbreviates long frames and pictures.
  override func logText(_ bytes: [UInt8], printable: Int) -> String {
    bytes.count > 1024 ? "\(bytes.count) bytes" : super.logText(bytes, printable: printable)
  }

  /// Closes a connection. If the program has ended, also closes the others and the port, and schedules the next program.
  private func reset(_ link: LinkName, _ reason: String, at now: Instant) {
    close(link)
    guard link == .main, machine.hasEnded else { return }
    log.write(name, reason)
    for link in connections.keys { close(link) }
    Glibc.close(acceptor.file)
    acceptor.file = -1
    restartsAt = machine.isOff ? nil : now + restartDelay
  }

  /// Starts a new program. If another process uses the port, tries again after 1 s.
  private func startProgram(at now: Instant) {
    do {
      acceptor.file = try TCPPort.listen(host: host, port: port, backlog: 1)
    } catch {
      log.write(name, "\(error)")
      restartsAt = now + .second
      return
    }
    restartsAt = nil
    machine = makeCar()
    log.write(name, "a new program is listening")
  }
}
