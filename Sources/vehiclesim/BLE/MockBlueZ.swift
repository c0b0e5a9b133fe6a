// A mock of BlueZ on a message bus: one adapter, the simulated peripheral, the peripherals of other simulators, and devices that only
// advertise. It implements the objects, calls and errors of bluetoothd that a GATT client needs.
// Source: BlueZ's doc/adapter-api.txt, device-api.txt, gatt-api.txt, and src/adapter.c on discovery clients (5.66).

import DBus
import Protocols
import ServiceRuntime

final class MockBlueZ: SimulatedRadio {
  static let name = "org.bluez"
  static let adapter = "/org/bluez/hci0"
  static let adapterInterface = "org.bluez.Adapter1"
  static let deviceInterface = "org.bluez.Device1"

  private var peripheral: SimulatedPeripheral?
  /// The bus names of clients with a running discovery.
  private var discoveryClients: Set<String> = []
  private let monitors: MockMonitors
  private let joined: JoinedSimulators
  /// Whether the adapter scans for advertisements: during a discovery, or for monitors.
  private var isScanning = false
  /// A number that changes whenever scanning starts or stops, so that advertising for an earlier scan ends.
  private var scanGeneration = 0
  /// The number of StartDiscovery calls.
  private var discoveryStarts = 0

  /// Creates the objects. Requires that this process already owns the bus name.
  init(_ settings: PeripheralSettings, on bus: DBusClient, loop: EventLoop, log: ActivityLog, machine: @escaping () -> any Machine) {
    monitors = MockMonitors(bus, isFull: settings.faults.contains(.fullMonitor))
    joined = JoinedSimulators(bus, address: settings.address)
    super.init(settings, on: bus, loop: loop, log: log)
    monitors.changed = { [unowned self] in updateScanning() }
    tree.emit = { [bus] in bus.send($0) }
    joined.radio = self
    var interfaces: [String: [String: DBusValue]] = [
      Self.adapterInterface: [
        "Address": .string("00:11:22:33:44:55"), "Name": .string("mock BlueZ"), "Powered": .bool(true), "Discovering": .bool(false),
      ]
    ]
    if !settings.faults.contains(.noMonitor) {
      interfaces[MockMonitors.managerInterface] = ["SupportedMonitorTypes": .strings(["or_patterns"]), "SupportedFeatures": .strings([])]
    }
    tree.add(Self.adapter, interfaces)
    peripheral = SimulatedPeripheral(settings, of: self, machine: machine)
    bus.onMessage = { [unowned self] in received($0) }
    log.announce("ble:\(settings.name)")
  }

  // MARK: The bus

  private func received(_ message: DBusMessage) {
    if message.kind == .signal {
      if message.member == "NameOwnerChanged", message.body.count == 3, message.body[2].string == "", let name = message.body[0].string {
        discoveryClients.remove(name)
        monitors.clientEnded(name)
        joined.clientEnded(name)
        updateDiscovery()
      }
      return
    }
    guard message.kind == .call, let path = message.path else { return }
    log.write("bus", "\(path) \(message.member ?? "")")
    switch (message.interface, message.member) {
    case (DBusDaemon.objectManager, "GetManagedObjects"): reply(to: message, tree.all)
    case (DBusDaemon.properties, "Get"):
      let names = message.body.compactMap(\.string)
      guard names.count == 2, let value = tree[path, names[0], names[1]] else { return reject(message, "InvalidArguments") }
      reply(to: message, .variant(value))
    case (DBusDaemon.properties, "Set"): set(path, message)
    case (Self.adapterInterface, _) where path == Self.adapter: adapterCall(message)
    case (JoinedSimulators.interface, _): joined.handle(message)
    case (MockMonitors.managerInterface, _) where tree.objects[path]?[MockMonitors.managerInterface] != nil: monitors.handle(message)
    default:
      if peripheral?.handle(message, path) != true, !joined.forward(message, path) {
        bus.send(message.failure("org.freedesktop.DBus.Error.UnknownObject", "Method \"\(message.member ?? "")\" doesn't exist"))
      }
    }
  }

  /// Handles Set: only the adapter's Powered property is writable.
  private func set(_ path: String, _ message: DBusMessage) {
    guard message.body.count == 3, path == Self.adapter, message.body[1].string == "Powered", let isOn = message.body[2].bool else {
      return reject(message, "InvalidArguments")
    }
    if !isOn {
      discoveryClients = []
      peripheral?.drop()
      joined.drop()
    }
    tree.set(path, Self.adapterInterface, "Powered", .bool(isOn))
    updateDiscovery()
    reply(to: message)
  }

  private var isPowered: Bool { tree[Self.adapter, Self.adapterInterface, "Powered"]?.bool ?? false }

  private func adapterCall(_ call: DBusMessage) {
    let client = call.sender ?? ""
    guard isPowered || call.member == "SetDiscoveryFilter" else { return reject(call, "NotReady", "Resource Not Ready") }
    switch call.member {
    case "SetDiscoveryFilter":
      guard call.body.first?.dictionary?["Transport"]?.string == "le" else { return reject(call, "InvalidArguments") }
      reply(to: call)
    case "StartDiscovery":
      discoveryStarts += 1
      if settings.faults.contains(where: { if case .busy(let count) = $0 { discoveryStarts <= count } else { false } }) {
        return reject(call, "InProgress", "Operation already in progress")
      }
      guard discoveryClients.insert(client).inserted else { return reject(call, "InProgress", "Operation already in progress") }
      let isUnanswered = settings.faults.contains { if case .mute(let count) = $0 { discoveryStarts <= count } else { false } }
      if !isUnanswered { reply(to: call) }
      updateDiscovery()
    case "StopDiscovery":
      guard discoveryClients.remove(client) != nil else { return reject(call, "Failed", "No discovery started") }
      reply(to: call)
      updateDiscovery()
    case "RemoveDevice":
      guard let path = call.body.first?.string, tree[path, Self.deviceInterface, "Address"] != nil else {
        return reject(call, "DoesNotExist", "Does Not Exist")
      }
      if !joined.remove(path), path == peripheral?.path { peripheral?.drop() }
      tree.remove(path)
      reply(to: call)
    default: reject(call, "NotSupported")
    }
  }

  // MARK: Discovery

  /// Starts or stops the discovery, depending on whether there are discovery clients.
  private func updateDiscovery() {
    let isSearching = !discoveryClients.isEmpty
    let wasSearching = tree[Self.adapter, Self.adapterInterface, "Discovering"]?.bool ?? false
    if isSearching != wasSearching {
      tree.set(Self.adapter, Self.adapterInterface, "Discovering", .bool(isSearching))
      if !isSearching { for path in tree.objects.keys.sorted() { tree.set(path, Self.deviceInterface, "RSSI", nil) } }
    }
    updateScanning()
  }

  /// Starts or stops scanning. Devices advertise every 100 ms.
  private func updateScanning() {
    let isNeeded = isPowered && (!discoveryClients.isEmpty || monitors.isActive)
    guard isNeeded != isScanning else { return }
    isScanning = isNeeded
    scanGeneration += 1
    if isNeeded { advertise(in: scanGeneration) }
  }

  private func advertise(in generation: Int) {
    guard generation == scanGeneration else { return }
    peripheral?.advertise()
    advertiseOthers(simulator: 0)
    joined.advertise()
    after(100 * .millisecond) { [weak self] in self?.advertise(in: generation) }
  }

  static func path(_ address: String) -> String { "\(adapter)/dev_\(address.replacing(":", with: "_"))" }

  override func reportAdvertisement(of path: String) {
    // AD type 1, Flags: LE General Discoverable Mode, BR/EDR Not Supported.
    monitors.report(path, [1: [0x06]])
  }
}
