// A mock of BlueZ on a message bus: one adapter, the simulated peripheral, and other devices that only advertise. It implements the
// objects, calls and errors of bluetoothd that a GATT client needs.
// Source: BlueZ's doc/adapter-api.txt, device-api.txt, gatt-api.txt, and src/adapter.c on discovery clients (5.66).

import DBus
import Glibc
import Protocols

final class MockBlueZ: EventSource {
  static let adapter = "/org/bluez/hci0"
  static let adapterInterface = "org.bluez.Adapter1"
  static let deviceInterface = "org.bluez.Device1"

  var tree = ObjectTree()
  let loop: EventLoop
  let log: ActivityLog
  private let bus: DBusClient
  private let settings: PeripheralSettings
  private var peripheral: SimulatedPeripheral?
  private let makeMachine: () -> any Machine
  /// The bus names of clients with a running discovery.
  private var discoveryClients: Set<String> = []
  private let monitors: MockMonitors
  /// Whether advertisements are received: during a discovery, or for monitors.
  private var isReceiving = false
  private var timers: [(at: Instant, action: () -> Void)] = []
  /// Incremented whenever the reception starts or stops, so that the advertisements of an earlier one end.
  private var receptionGeneration = 0
  /// The number of StartDiscovery calls.
  private var discoveryStarts = 0

  init(_ settings: PeripheralSettings, bus address: String, loop: EventLoop, log: ActivityLog, machine: @escaping () -> any Machine) {
    self.settings = settings
    self.loop = loop
    self.log = log
    makeMachine = machine
    bus = DBusClient(to: address)
    monitors = MockMonitors(bus, isFull: settings.faults.contains(.fullMonitor))
    super.init()
    monitors.changed = { [unowned self] in updateReception() }
    tree.emit = { [bus] in bus.send($0) }
    bus.onReady = { [unowned self] in registerOnBus() }
    bus.onMessage = { [unowned self] in received($0) }
    bus.onEnd = { reason in
      Console.writeError("disconnected from the message bus: \(reason)")
      exit(1)
    }
    loop.add(bus)
    loop.add(self)
  }

  override func timerFired(at now: Instant) {
    let due = timers.filter { $0.at <= now }
    timers.removeAll { $0.at <= now }
    due.forEach { $0.action() }
    wake = timers.map(\.at).min()
  }

  /// Runs an action after a delay.
  func after(_ time: Nanoseconds, _ action: @escaping () -> Void) {
    timers.append((SimulatorClock.now + time, action))
    wake = timers.map(\.at).min()
  }

  /// Runs an action after a delay of the radio, or immediately with `--instant`.
  func afterRadioDelay(_ time: Nanoseconds, _ action: @escaping () -> Void) {
    if settings.isInstant { action() } else { after(time, action) }
  }

  func reply(to call: DBusMessage, _ body: DBusValue...) { bus.send(call.reply(body)) }
  func reject(_ call: DBusMessage, _ error: String, _ text: String = "") { bus.send(call.failure("org.bluez.Error.\(error)", text)) }

  // MARK: The bus

  /// Creates the objects and requests the name of BlueZ.
  private func registerOnBus() {
    var interfaces: [String: [String: DBusValue]] = [
      Self.adapterInterface: [
        "Address": .string("00:11:22:33:44:55"), "Name": .string("mock BlueZ"), "Powered": .bool(true), "Discovering": .bool(false),
      ]
    ]
    if !settings.faults.contains(.noMonitor) {
      interfaces[MockMonitors.managerInterface] = ["SupportedMonitorTypes": .strings(["or_patterns"]), "SupportedFeatures": .strings([])]
    }
    tree.add(Self.adapter, interfaces)
    peripheral = SimulatedPeripheral(settings, of: self, machine: makeMachine)
    let rule = "type='signal',sender='\(DBusDaemon.name)',member='NameOwnerChanged'"
    bus.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "AddMatch", [.string(rule)])) { _ in }
    bus.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "RequestName", [.string("org.bluez"), .uint32(4)])) {
      [unowned self] result in
      guard case .success(let message) = result, message.body.first?.int == 1 else {
        Console.writeError("another process owns org.bluez on this bus: use a private message bus")
        exit(1)
      }
      log.announce("ble:\(settings.name)")
    }
  }

  private func received(_ message: DBusMessage) {
    if message.kind == .signal {
      if message.member == "NameOwnerChanged", message.body.count == 3, message.body[2].string == "", let name = message.body[0].string {
        discoveryClients.remove(name)
        monitors.clientEnded(name)
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
    case (MockMonitors.managerInterface, _) where tree.objects[path]?[MockMonitors.managerInterface] != nil: monitors.handle(message)
    default:
      if peripheral?.handle(message, path) != true {
        bus.send(message.failure("org.freedesktop.DBus.Error.UnknownObject", "Method \"\(message.member ?? "")\" doesn't exist"))
      }
    }
  }

  /// Handles Set: only Powered of the adapter is writable.
  private func set(_ path: String, _ message: DBusMessage) {
    guard message.body.count == 3, path == Self.adapter, message.body[1].string == "Powered", let isOn = message.body[2].bool else {
      return reject(message, "InvalidArguments")
    }
    if !isOn {
      discoveryClients = []
      peripheral?.drop()
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
      guard let path = call.body.first?.string, tree.objects[path] != nil else { return reject(call, "DoesNotExist", "Does Not Exist") }
      peripheral?.drop()
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
    updateReception()
  }

  /// Starts or stops receiving. Devices advertise every 100 ms.
  private func updateReception() {
    let isNeeded = isPowered && (!discoveryClients.isEmpty || monitors.isActive)
    guard isNeeded != isReceiving else { return }
    isReceiving = isNeeded
    receptionGeneration += 1
    if isNeeded { advertise(in: receptionGeneration) }
  }

  private func advertise(in generation: Int) {
    guard generation == receptionGeneration else { return }
    peripheral?.advertise()
    for (index, other) in settings.others.enumerated() {
      let address = Self.address(of: index)
      deviceFound(path: Self.path(address), address: address, name: other.name, services: [], rssi: other.rssi ?? -80 - index)
      if other.isConnected {
        tree.set(Self.path(address), Self.deviceInterface, "Connected", .bool(true))
        tree.set(Self.path(address), Self.deviceInterface, "UUIDs", .strings(["0000111e-0000-1000-8000-00805f9b34fb"]))
      }
    }
    after(100 * .millisecond) { [weak self] in self?.advertise(in: generation) }
  }

  static func path(_ address: String) -> String { "\(adapter)/dev_\(address.replacing(":", with: "_"))" }
  private static func address(of index: Int) -> String {
    "66:55:44:33:22:" + (index < 16 ? "0" : "") + String(index, radix: 16, uppercase: true)
  }

  /// Adds the device of an advertisement, or updates its RSSI.
  func deviceFound(path: String, address: String, name: String, services: [GATTUUID], rssi: Int) {
    let strength = DBusValue.int16(Int16(rssi))
    // LE General Discoverable Mode, BR/EDR Not Supported.
    defer { monitors.report(path, [1: [0x06]]) }
    if tree.objects[path] != nil { return tree.set(path, Self.deviceInterface, "RSSI", strength) }
    tree.add(
      path,
      [
        Self.deviceInterface: [
          "Address": .string(address), "AddressType": .string("public"), "Name": .string(name), "Alias": .string(name), "RSSI": strength,
          "Paired": .bool(false), "Connected": .bool(false), "ServicesResolved": .bool(false), "Adapter": .path(Self.adapter),
          "UUIDs": .strings(services.map(\.text)),
        ]
      ])
  }
}

/// The properties of the simulated peripheral, from the command line.
struct PeripheralSettings {
  var name: String
  var address: String
  var profile: GATTProfile
  /// The flags of the characteristic to write.
  var writeFlags: [String]
  var mtu: Int
  var others: [BLEOptions.OtherDevice]
  var faults: [RadioFault]
  var traits: PeripheralTraits
  var isInstant: Bool
}
