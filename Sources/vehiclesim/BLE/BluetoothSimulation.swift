// Connects to the message bus and selects the role of this simulator: the first simulator on a bus provides the mock BlueZ, and further
// simulators add their peripherals to it.

import DBus
import Glibc
import Protocols
import ServiceRuntime

final class BluetoothSimulation {
  private let bus: DBusClient
  private var radio: SimulatedRadio?

  init(_ settings: PeripheralSettings, bus address: String, loop: EventLoop, log: ActivityLog, machine: @escaping () -> any Machine) {
    bus = DBusClient(to: address)
    bus.onReady = { [unowned self] in
      let rule = "type='signal',sender='\(DBusDaemon.name)',member='NameOwnerChanged'"
      bus.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "AddMatch", [.string(rule)])) { _ in }
      // Flag 4: fail instead of queueing for the name.
      bus.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "RequestName", [.string(MockBlueZ.name), .uint32(4)])) {
        [unowned self] result in
        let isFirst = if case .success(let message) = result { message.body.first?.int == 1 } else { false }
        radio =
          isFirst
          ? MockBlueZ(settings, on: bus, loop: loop, log: log, machine: machine)
          : RemoteRadio(settings, on: bus, loop: loop, log: log, machine: machine)
      }
    }
    bus.onEnd = { Self.fail("disconnected from the message bus: \($0)") }
    loop.add(bus)
  }

  /// Ends the program.
  static func fail(_ message: String) {
    Console.writeError(message)
    exit(1)
  }
}
