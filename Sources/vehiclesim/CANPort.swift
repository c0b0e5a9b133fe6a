// The endpoint on a CAN interface of the kernel, shared by all programs on it. While the interface is down or missing, it is opened again
// every second.

import CLinux
import Glibc
import Protocols
import ServiceRuntime

final class CANPort<Peer: Machine>: MachineRunner<Peer> {
  private let interface: String

  /// Opens the interface, and announces the link URL.
  init(_ machine: Peer, interface: String, loop: EventLoop, log: ActivityLog) throws {
    self.interface = interface
    super.init(machine, name: interface, loop: loop, log: log)
    loop.add(self)
    start()
    let failure = openSocket()
    guard failure == 0 else { throw SimulatorError(canInterfaceMessage(interface, -failure)) }
    log.announce("can:\(interface)")
  }

  /// Returns 0, or -errno.
  private func openSocket() -> CInt {
    let descriptor = clinux_can_open(interface)
    guard descriptor >= 0 else { return descriptor }
    open(descriptor, name: interface, readSize: SocketCAN.frameLength)
    return 0
  }

  override func ended(_ connection: Connection, at now: Instant) {
    close(.main)
    feed(.linkChanged(.main, .down("\(interface) is down")), at: now)
  }

  override func timerFired(at now: Instant) {
    if connections.isEmpty { _ = openSocket() }
    super.timerFired(at: now)
  }

  override func updateTimer() {
    wake = connections.isEmpty ? SystemClock.monotonic + .second : machine.nextWake
  }

  /// Shows frames as in logs of candump.
  override func logText(_ bytes: [UInt8], printable: Int) -> String {
    var texts: [String] = []
    SocketCAN.decode(bytes) { texts.append($0.candumpText) }
    return texts.joined(separator: " ")
  }
}
