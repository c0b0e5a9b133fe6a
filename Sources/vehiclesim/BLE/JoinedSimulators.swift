// The other simulators on the bus of the mock BlueZ. Each simulator has the objects of its own peripheral, and sends changes of these
// objects to the mock BlueZ. The mock BlueZ repeats the changes under its own name, and forwards clients' calls to the simulator.
// `RemoteRadio` is the simulator's end.

import DBus
import Protocols

final class JoinedSimulators {
  /// The private interface between both ends. Clients of BlueZ do not use it.
  static let interface = "io.vehicled.MockBlueZ"
  /// The object path of both ends.
  static let path = "/io/vehicled/MockBlueZ"

  private struct Simulator {
    /// The name of the simulator on the bus.
    let client: String
    let address: String
    /// The paths of the devices that the simulator has added.
    var paths: Set<String> = []
  }

  weak var radio: MockBlueZ?
  private let bus: DBusClient
  /// The address of the peripheral of the mock BlueZ itself.
  private let address: String
  private var simulators: [Simulator] = []
  /// The number of simulators that have joined so far.
  private var count = 0

  init(_ bus: DBusClient, address: String) { (self.bus, self.address) = (bus, address) }

  // MARK: Calls from the simulators

  func handle(_ call: DBusMessage) {
    guard let client = call.sender else { return }
    let text = call.body.first?.string ?? ""
    guard let index = simulators.firstIndex(where: { $0.client == client }) else {
      guard call.member == "Join" else { return bus.send(call.failure("org.bluez.Error.DoesNotExist", "")) }
      return join(call, client, address: text)
    }
    switch call.member {
    case "InterfacesAdded":
      if text.split(separator: "/").count == 4 { simulators[index].paths.insert(text) }
      let interfaces = call.body.dropFirst().first?.dictionary ?? [:]
      radio?.tree.add(text, interfaces.mapValues { ($0.dictionary ?? [:]).mapValues(\.unwrapped) })
    case "InterfacesRemoved": radio?.tree.remove(text)
    case "PropertiesChanged": change(text, Array(call.body.dropFirst()))
    case "Advertised": radio?.reportAdvertisement(of: text)
    default: bus.send(call.failure("org.bluez.Error.NotSupported", ""))
    }
  }

  private func join(_ call: DBusMessage, _ client: String, address: String) {
    guard address != self.address, !simulators.contains(where: { $0.address == address }) else {
      return bus.send(call.failure("org.bluez.Error.AlreadyExists", ""))
    }
    simulators.append(Simulator(client: client, address: address))
    count += 1
    bus.send(call.reply([.uint32(UInt32(count))]))
  }

  private func change(_ path: String, _ body: [DBusValue]) {
    guard body.count == 3, let interface = body[0].string else { return }
    for (name, value) in body[1].dictionary ?? [:] { radio?.tree.set(path, interface, name, value.unwrapped) }
    for name in body[2].strings ?? [] { radio?.tree.set(path, interface, name, nil) }
  }

  /// Removes the devices of a simulator that has left the bus.
  func clientEnded(_ client: String) {
    guard let index = simulators.firstIndex(where: { $0.client == client }) else { return }
    simulators.remove(at: index).paths.sorted().forEach { radio?.tree.remove($0) }
  }

  // MARK: Calls to the simulators

  /// Forwards a client's call to the simulator with this object, and the reply to the client. Returns false if no simulator has the object.
  func forward(_ call: DBusMessage, _ path: String) -> Bool {
    guard let owner = owner(of: path), let interface = call.interface, let member = call.member else { return false }
    bus.call(.call(owner.client, path, interface, member, call.body)) { [bus] result in
      switch result {
      case .success(let reply): bus.send(call.reply(reply.body))
      case .failure(.refused(let name, let text)): bus.send(call.failure(name, text))
      case .failure: break  // the simulator does not reply, so neither does the mock BlueZ
      }
    }
    return true
  }

  /// Makes every simulator send one advertisement.
  func advertise() { simulators.forEach { send($0, "Advertise") } }

  /// Drops all connections.
  func drop() { simulators.forEach { send($0, "Drop") } }

  /// Drops the connection to a device that is being removed. Returns false if no simulator has this device.
  func remove(_ path: String) -> Bool {
    guard let owner = owner(of: path) else { return false }
    send(owner, "Remove", [.string(path)])
    return true
  }

  private func owner(of path: String) -> Simulator? {
    simulators.first { $0.paths.contains { path == $0 || path.hasPrefix($0 + "/") } }
  }

  private func send(_ simulator: Simulator, _ member: String, _ body: [DBusValue] = []) {
    var message = DBusMessage.call(simulator.client, Self.path, Self.interface, member, body)
    message.expectsReply = false
    bus.send(message)
  }
}
