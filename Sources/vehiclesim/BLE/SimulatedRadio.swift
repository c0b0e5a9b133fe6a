// The radio of a simulated peripheral: BlueZ's objects, replies to calls, delays and advertisements. The first simulator on a bus
// provides the mock BlueZ (`MockBlueZ`); further simulators use that one (`RemoteRadio`).

import DBus
import Protocols
import ServiceRuntime

class SimulatedRadio: EventSource {
  final var tree = ObjectTree()
  final let bus: DBusClient
  final let settings: PeripheralSettings
  final let loop: EventLoop
  final let log: ActivityLog
  private var timers: [(at: Instant, action: () -> Void)] = []

  init(_ settings: PeripheralSettings, on bus: DBusClient, loop: EventLoop, log: ActivityLog) {
    (self.settings, self.bus, self.loop, self.log) = (settings, bus, loop, log)
    super.init()
    loop.add(self)
  }

  override final func timerFired(at now: Instant) {
    let due = timers.filter { $0.at <= now }
    timers.removeAll { $0.at <= now }
    due.forEach { $0.action() }
    wake = timers.map(\.at).min()
  }

  /// Runs an action after a delay.
  final func after(_ time: Nanoseconds, _ action: @escaping () -> Void) {
    timers.append((SystemClock.monotonic + time, action))
    wake = timers.map(\.at).min()
  }

  /// Runs an action after a radio delay, or immediately with `--instant`.
  final func afterRadioDelay(_ time: Nanoseconds, _ action: @escaping () -> Void) {
    if settings.isInstant { action() } else { after(time, action) }
  }

  final func reply(to call: DBusMessage, _ body: DBusValue...) { bus.send(call.reply(body)) }
  final func reject(_ call: DBusMessage, _ error: String, _ text: String = "") {
    bus.send(call.failure("org.bluez.Error.\(error)", text))
  }

  // MARK: Advertisements

  /// Reports an advertisement of this device to the monitors.
  func reportAdvertisement(of path: String) {}

  /// Sends one advertisement of each device of `--also`. `simulator` is the number of this simulator on the bus.
  final func advertiseOthers(simulator: Int) {
    for (index, other) in settings.others.enumerated() {
      let address = Self.address(of: index, simulator)
      deviceFound(path: MockBlueZ.path(address), address: address, name: other.name, services: [], rssi: other.rssi ?? -80 - index)
      if other.isConnected {
        tree.set(MockBlueZ.path(address), MockBlueZ.deviceInterface, "Connected", .bool(true))
        tree.set(MockBlueZ.path(address), MockBlueZ.deviceInterface, "UUIDs", .strings(["0000111e-0000-1000-8000-00805f9b34fb"]))
      }
    }
  }

  private static func address(of index: Int, _ simulator: Int) -> String {
    "66:55:44:33:\(hexadecimal(0x22 + simulator)):\(hexadecimal(index))"
  }

  /// The lowest byte of the number, as two hexadecimal digits.
  static func hexadecimal(_ number: Int) -> String {
    (number & 0xFF < 16 ? "0" : "") + String(number & 0xFF, radix: 16, uppercase: true)
  }

  /// Adds the device of an advertisement, or updates its RSSI.
  final func deviceFound(path: String, address: String, name: String, services: [GATTUUID], rssi: Int) {
    let strength = DBusValue.int16(Int16(rssi))
    defer { reportAdvertisement(of: path) }
    if tree.objects[path] != nil { return tree.set(path, MockBlueZ.deviceInterface, "RSSI", strength) }
    tree.add(
      path,
      [
        MockBlueZ.deviceInterface: [
          "Address": .string(address), "AddressType": .string("public"), "Name": .string(name), "Alias": .string(name), "RSSI": strength,
          "Paired": .bool(false), "Connected": .bool(false), "ServicesResolved": .bool(false), "Adapter": .path(MockBlueZ.adapter),
          "UUIDs": .strings(services.map(\.text)),
        ]
      ])
  }
}

/// The properties of the simulated peripheral, from the command line.
struct PeripheralSettings {
  var name: String
  var address: String
  /// Whether the user has given the address.
  var isAddressGiven: Bool
  var profile: GATTProfile
  /// The flags of the write characteristic.
  var writeFlags: [String]
  var mtu: Int
  var others: [BLEOptions.OtherDevice]
  var faults: [RadioFault]
  var traits: PeripheralTraits
  var isInstant: Bool
}
