// BlueZ's advertisement monitor reports advertising peers without an active scan: either the kernel scans passively, or the Bluetooth
// controller itself matches the patterns. The daemon registers a monitor only while a link needs it. For each adapter, it exports to BlueZ
// an object that implements ObjectManager, and a monitor below that object.
// Source: org.bluez.AdvertisementMonitor(5), org.bluez.AdvertisementMonitorManager(5), src/adv_monitor.c. Both interfaces are experimental:
// bluetoothd exports them only with --experimental.

import DBus
import Protocols

@Loop final class AdvertisementMonitor: BlueZObserver {
  private struct Registration {
    /// The path of the exported object. Each registration has its own path, so that late calls for an earlier one can be told apart.
    let root: String
    /// Whether BlueZ has activated the monitor.
    var isActive = false
    /// Whether BlueZ has rejected or released the monitor. It is registered again for the next client.
    var isRejected = false
  }

  private unowned let blueZ: BlueZ
  /// For each client, the adapter's path and the function to call when a peer comes into range.
  private var clients: [ObjectIdentifier: (adapter: String, found: @Loop (String) -> Void)] = [:]
  /// The registrations, by the adapter's path.
  private var registrations: [String: Registration] = [:]
  private var registrationCount = 0
  /// When the last advertisement of a peer was received, by the peer's path.
  private var lastAdvertisements: [String: Instant] = [:]

  static let interface = "org.bluez.AdvertisementMonitor1"
  static let managerInterface = "org.bluez.AdvertisementMonitorManager1"
  /// After this time without an advertisement, a peer is out of range. Peers advertise at least every 10.24 s.
  static let maxSilence: Nanoseconds = 15 * .second
  /// The values of the AD type Flags (1) at position 0 that peripherals advertise: limited discoverable, general discoverable or neither,
  /// each with or without classic Bluetooth. They match every connectable peripheral, because a pattern can match neither an address nor
  /// a name that is sent only in the scan response. The kernel accepts at most 16 patterns.
  /// Source: Bluetooth Core Specification Supplement, part A, 1.3.
  private static let flags: [UInt8] = [0x06, 0x05, 0x04, 0x02, 0x01, 0x0A, 0x09, 0x1A, 0x19, 0x12, 0x11, 0x18, 0x1E]

  init(_ blueZ: BlueZ) { self.blueZ = blueZ }

  /// Monitors the adapter with this path until `end`. Calls `found` with the path of each peer that comes into range.
  func begin(for client: AnyObject, on adapter: String, found: @escaping @Loop (String) -> Void) {
    if clients.isEmpty { blueZ.add(self) }
    clients[ObjectIdentifier(client)] = (adapter, found)
    if registrations[adapter]?.isRejected == true { registrations[adapter] = nil }
    updateRegistrations()
  }

  func end(for client: AnyObject) {
    guard clients.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
    updateRegistrations()
    if clients.isEmpty { blueZ.remove(self) }
  }

  /// Whether BlueZ reports peers on this adapter without a scan.
  func isActive(_ adapter: String) -> Bool { registrations[adapter]?.isActive == true }

  /// Whether an advertisement of the peer was received recently.
  func hasRecentAdvertisement(from peer: String, at now: Instant) -> Bool {
    lastAdvertisements[peer].map { now - $0 < Self.maxSilence } ?? false
  }

  func blueZChanged() { updateRegistrations() }

  private func updateRegistrations() {
    guard blueZ.presence == .present else {
      registrations = [:]
      lastAdvertisements = [:]
      return
    }
    let needed = Set(clients.values.map(\.adapter))
    for adapter in registrations.keys where !needed.contains(adapter) || !isSupported(adapter) { unregister(adapter) }
    for adapter in needed where registrations[adapter] == nil && isSupported(adapter) { register(adapter) }
  }

  private func isSupported(_ adapter: String) -> Bool {
    blueZ.adapter(path: adapter)?.isPowered == true
      && blueZ.objects[adapter]?[Self.managerInterface]?["SupportedMonitorTypes"]?.strings?.contains("or_patterns") == true
  }

  private func register(_ adapter: String) {
    registrationCount += 1
    let root = "/io/vehicled/monitor\(registrationCount)"
    registrations[adapter] = Registration(root: root)
    blueZ.call(adapter, Self.managerInterface, "RegisterMonitor", [.path(root)]) { [weak self] result in
      guard let self, case .failure = result, registrations[adapter]?.root == root else { return }
      registrations[adapter]?.isRejected = true
    }
  }

  private func unregister(_ adapter: String) {
    guard let registration = registrations.removeValue(forKey: adapter) else { return }
    lastAdvertisements = lastAdvertisements.filter { !$0.key.hasPrefix(adapter + "/") }
    blueZ.call(adapter, Self.managerInterface, "UnregisterMonitor", [.path(registration.root)])
  }

  // MARK: The exported objects

  /// Handles a call from BlueZ to an exported object. Returns the reply, or nil if the method has none.
  func handle(_ call: DBusMessage) -> DBusMessage? {
    let adapter = registrations.first { call.path == $0.value.root || call.path == "\($0.value.root)/0" }?.key
    switch (call.interface, call.member, adapter) {
    case (DBusDaemon.objectManager, "GetManagedObjects", let adapter?):
      let interfaces = DBusValue.array(of: "{sa{sv}}", [.entry(.string(Self.interface), .properties(Self.properties))])
      let path = "\(registrations[adapter]?.root ?? "")/0"
      return call.reply([.array(of: "{oa{sa{sv}}}", [.entry(.path(path), interfaces)])])
    case (DBusDaemon.properties, "GetAll", _?) where call.body.first?.string == Self.interface:
      return call.reply([.properties(Self.properties)])
    case (Self.interface, "Activate", let adapter?):
      registrations[adapter]?.isActive = true
      blueZ.notify()
    case (Self.interface, "Release", let adapter?):
      let root = registrations[adapter]?.root ?? ""
      registrations[adapter] = Registration(root: root, isRejected: true)
      // After Release, BlueZ still has our object manager registered, without monitors.
      blueZ.call(adapter, Self.managerInterface, "UnregisterMonitor", [.path(root)])
      blueZ.notify()
    case (Self.interface, "DeviceFound", _?): if let peer = call.body.first?.string { advertised(peer) }
    case (Self.interface, "DeviceLost", _?): if let peer = call.body.first?.string { lastAdvertisements[peer] = nil }
    case (Self.interface, _, _): break
    default: return call.failure("org.freedesktop.DBus.Error.UnknownMethod", "no such method")
    }
    return nil
  }

  private static let properties: [String: DBusValue] = [
    "Type": .string("or_patterns"),
    "Patterns": .array(of: "(yyay)", flags.map { .structure([.byte(0), .byte(1), .bytes([$0])]) }),
  ]

  /// Records that an advertisement of the peer was received, by the monitor or by a scan.
  func advertised(_ peer: String) {
    guard !clients.isEmpty else { return }
    let now = Clock.monotonic()
    let isNew = !hasRecentAdvertisement(from: peer, at: now)
    if isNew { lastAdvertisements = lastAdvertisements.filter { now - $0.value < Self.maxSilence } }
    lastAdvertisements[peer] = now
    guard isNew else { return }
    blueZ.notify()
    for client in clients.values where peer.hasPrefix(client.adapter + "/") { client.found(peer) }
  }
}
