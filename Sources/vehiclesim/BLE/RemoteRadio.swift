// The radio of a simulator on a bus where another simulator provides the mock BlueZ. This class sends changes of its objects to the mock
// BlueZ, and receives the calls of clients from it. `JoinedSimulators` is the other end.

import DBus
import Protocols
import ServiceRuntime

final class RemoteRadio: SimulatedRadio {
  private let makeMachine: () -> any Machine
  private var peripheral: SimulatedPeripheral?
  /// The number that the mock BlueZ has assigned.
  private var number = 0

  init(_ settings: PeripheralSettings, on bus: DBusClient, loop: EventLoop, log: ActivityLog, machine: @escaping () -> any Machine) {
    makeMachine = machine
    super.init(settings, on: bus, loop: loop, log: log)
    if settings.faults.contains(where: \.affectsAdapter) {
      BluetoothSimulation.fail(
        "busy, mute, no-monitor and full-monitor are faults of the adapter: give them to the first simulator on this bus")
    }
    tree.emit = { [unowned self] signal in send(signal.member ?? "", forwarded(signal)) }
    bus.onMessage = { [unowned self] in received($0) }
    join(settings.address, attempt: 0)
  }

  /// Joins the mock BlueZ with the first address that no other simulator has. If the user has given an address, only that one is tried.
  private func join(_ address: String, attempt: Int) {
    bus.call(.call(MockBlueZ.name, JoinedSimulators.path, JoinedSimulators.interface, "Join", [.string(address)])) {
      [unowned self] result in
      switch result {
      case .success(let message):
        number = message.body.first?.int ?? 0
        var settings = settings
        settings.address = address
        peripheral = SimulatedPeripheral(settings, of: self, machine: makeMachine)
        log.announce("ble:\(settings.name)")
      case .failure(.refused("org.bluez.Error.AlreadyExists", _)):
        guard !settings.isAddressGiven, attempt < 0xDD else {
          return BluetoothSimulation.fail("another simulator on this bus has the address \(address): choose another one")
        }
        join("\(settings.address.dropLast(2))\(Self.hexadecimal(0x22 + attempt + 1))", attempt: attempt + 1)
      case .failure:
        BluetoothSimulation.fail("another process owns \(MockBlueZ.name) on this bus: use a private message bus")
      }
    }
  }

  private func received(_ message: DBusMessage) {
    if message.kind == .signal {
      guard message.member == "NameOwnerChanged", message.body.count == 3, message.body[0].string == MockBlueZ.name else { return }
      return BluetoothSimulation.fail("the simulator that provides the mock BlueZ on this bus has ended: start this one again")
    }
    guard message.kind == .call, let path = message.path else { return }
    switch (message.interface, message.member) {
    case (JoinedSimulators.interface, "Advertise"):
      peripheral?.advertise()
      advertiseOthers(simulator: number)
    case (JoinedSimulators.interface, "Drop"): peripheral?.drop()
    case (JoinedSimulators.interface, "Remove"):
      guard let removed = message.body.first?.string else { return }
      if removed == peripheral?.path { peripheral?.drop() }
      tree.remove(removed)
    default:
      log.write("bus", "\(path) \(message.member ?? "")")
      if peripheral?.handle(message, path) != true {
        bus.send(message.failure("org.freedesktop.DBus.Error.UnknownObject", "Method \"\(message.member ?? "")\" doesn't exist"))
      }
    }
  }

  override func reportAdvertisement(of path: String) { send("Advertised", [.string(path)]) }

  /// Returns the body of a signal for the mock BlueZ. The body of PropertiesChanged does not contain the object path, so the path is added.
  private func forwarded(_ signal: DBusMessage) -> [DBusValue] {
    signal.member == "PropertiesChanged" ? [.string(signal.path ?? "")] + signal.body : signal.body
  }

  private func send(_ member: String, _ body: [DBusValue]) {
    var message = DBusMessage.call(MockBlueZ.name, JoinedSimulators.path, JoinedSimulators.interface, member, body)
    message.expectsReply = false
    bus.send(message)
  }
}
