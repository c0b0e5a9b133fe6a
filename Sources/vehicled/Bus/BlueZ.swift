// A copy of BlueZ's adapters, peripherals and GATT tables, updated by its signals. Only properties that the daemon uses are stored.
// Signals from other senders are ignored, because every client of the bus can send signals.
// Source: BlueZ's doc/adapter-api.txt, device-api.txt, gatt-api.txt (5.66); the D-Bus specification, ObjectManager.

import DBus
import Protocols

/// An observer of changes of BlueZ's objects. Called at most once per turn of the loop.
@Loop protocol BlueZObserver: AnyObject {
  func blueZChanged()
}

@Loop final class BlueZ {
  typealias Properties = [String: DBusValue]

  /// Whether BlueZ is available.
  enum Presence: Equatable {
    /// Not connected yet, or connecting.
    case unknown
    case absent(String)
    case present
  }

  private(set) var presence = Presence.unknown
  /// Interfaces and their properties by object path.
  private(set) var objects: [String: [String: Properties]] = [:]
  /// The shared scan.
  private(set) lazy var scanner = BLEScanner(self)
  /// The shared monitor of advertisements.
  private(set) lazy var monitor = AdvertisementMonitor(self)

  /// Called with each notification of a characteristic, by its object path.
  var notificationHandlers: [String: @Loop ([UInt8]) -> Void] = [:]

  /// The link that uses each claimed peripheral, by the peripheral's path.
  private var claims: [String: ObjectIdentifier] = [:]
  /// The peripherals, by path, that are being disconnected.
  private var disconnecting: Set<String> = []
  /// The times until which unsuitable peers are skipped, by address.
  private var rejected: [String: Instant] = [:]
  /// The number of consecutive failures to connect, by address.
  private var connectFailures: [String: Int] = [:]
  private var lastSeenPath: String?
  /// Whether objects were ignored because there are too many.
  private(set) var isFull = false

  private let bus: SystemBus
  private var owner: String? { didSet { bus.signalSender = owner } }
  /// The number of the last `fetch`. Replies to earlier ones are ignored.
  private var fetchNumber = 0
  private var observers: [ObjectIdentifier: Weak] = [:]
  private var isNotifying = false
  private lazy var retryTimer = Timer { [weak self] _ in self?.findOwner() }
  private lazy var notifyTimer = Timer { [weak self] _ in self?.notify() }

  private struct Weak {
    weak var observer: (any BlueZObserver)?
  }

  static let name = "org.bluez"
  /// The stored properties of each interface.
  private static let storedProperties: [String: Set<String>] = [
    "org.bluez.Adapter1": ["Address", "Powered", "Discovering"],
    AdvertisementMonitor.managerInterface: ["SupportedMonitorTypes"],
    "org.bluez.Device1": ["Address", "Name", "RSSI", "Paired", "Connected", "ServicesResolved", "Adapter", "UUIDs"],
    "org.bluez.GattService1": ["UUID"],
    "org.bluez.GattCharacteristic1": ["UUID", "Service", "Flags", "MTU", "NotifyAcquired", "WriteAcquired"],
  ]
  private static let maxObjects = 8192
  /// The minimum interval between notifications of RSSI changes: many peripherals together cause hundreds of changes per second.
  private static let rssiInterval: Nanoseconds = 100 * .millisecond

  init(_ bus: SystemBus) {
    self.bus = bus
    bus.changed = { [unowned self] in busChanged() }
    bus.received = { [unowned self] in received($0) }
  }

  /// Adds an observer, and connects to the bus if needed.
  func add(_ observer: any BlueZObserver) {
    observers[ObjectIdentifier(observer)] = Weak(observer: observer)
    // The reason for the last failure may no longer apply.
    if bus.downReason != nil { presence = .unknown }
    bus.open()
  }

  func remove(_ observer: any BlueZObserver) { observers[ObjectIdentifier(observer)] = nil }

  /// Calls a method of a BlueZ object.
  func call(
    _ path: String, _ interface: String, _ member: String, _ body: [DBusValue] = [], milliseconds: Int = 25_000,
    then reply: @escaping @Loop @Sendable (Result<DBusMessage, DBusError>) -> Void = { _ in }
  ) {
    let destination = owner ?? Self.name
    bus.call(.call(destination, path, interface, member, body), milliseconds: milliseconds, then: reply)
  }

  /// Closes the connection after pending calls are sent. BlueZ then ends the daemon's scans.
  func close() async { await bus.close() }

  // MARK: Peripherals

  /// The peripheral with the most recent advertisement.
  var lastSeen: Peripheral? { lastSeenPath.flatMap(peripheral) }

  func isDisconnecting(_ path: String) -> Bool { disconnecting.contains(path) }
  /// The time until which the peer is skipped, or nil if it is not skipped.
  func rejection(of address: String, at now: Instant) -> Instant? { rejected[address].flatMap { now < $0 ? $0 : nil } }
  func reject(_ address: String, atLeastUntil moment: Instant) {
    let now = Clock.monotonic()
    rejected = rejected.filter { $0.value > now }
    rejected[address] = max(moment, rejected[address] ?? .min)
  }
  func recordConnectSuccess(_ address: String) { connectFailures[address] = nil }

  /// Whether another link uses the peripheral.
  func isClaimed(_ path: String, byOtherThan link: AnyObject) -> Bool { claims[path].map { $0 != ObjectIdentifier(link) } ?? false }
  func claim(_ path: String, for link: AnyObject) { claims[path] = ObjectIdentifier(link) }
  func release(_ link: AnyObject) { claims = claims.filter { $0.value != ObjectIdentifier(link) } }

  /// Counts a failure to connect. Returns true for every third consecutive failure.
  func recordConnectFailure(_ address: String) -> Bool {
    connectFailures[address, default: 0] += 1
    return connectFailures[address, default: 0] % 3 == 0
  }

  /// Disconnects a peripheral, or cancels connecting.
  func disconnect(_ path: String) {
    guard disconnecting.insert(path).inserted else { return }
    call(path, Peripheral.interface, "Disconnect") { [weak self] _ in
      self?.disconnecting.remove(path)
      self?.notify()
    }
  }

  // MARK: Bus and service

  private func busChanged() {
    guard bus.state == .up else { return becomeAbsent("no system bus (\(bus.downReason ?? "closed")): sudo systemctl start dbus") }
    let rules = [
      "type='signal',sender='\(DBusDaemon.name)',interface='\(DBusDaemon.name)',member='NameOwnerChanged',arg0='\(Self.name)'",
      "type='signal',sender='\(Self.name)',interface='\(DBusDaemon.objectManager)'",
      "type='signal',sender='\(Self.name)',interface='\(DBusDaemon.properties)',member='PropertiesChanged'",
    ]
    for rule in rules { bus.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "AddMatch", [.string(rule)])) { _ in } }
    findOwner()
  }

  private func findOwner() {
    guard bus.state == .up else { return }
    bus.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "GetNameOwner", [.string(Self.name)]), milliseconds: 10_000) {
      [weak self] result in
      switch result {
      case .success(let message): self?.ownerChanged(to: message.body.first?.string ?? "")
      case .failure(.refused("org.freedesktop.DBus.Error.NameHasNoOwner", _)): self?.ownerChanged(to: "")
      case .failure(.disconnected): break
      case .failure(let error): self?.fail("cannot look up BlueZ on the system bus: \(error.message)")
      }
    }
  }

  /// Handles a change of the owner of BlueZ's bus name. `new` is empty if the name has no owner.
  private func ownerChanged(to new: String) {
    guard !new.isEmpty else { return becomeAbsent("BlueZ is not running: systemctl start bluetooth") }
    owner = new
    fetch()
  }

  private func becomeAbsent(_ reason: String) {
    owner = nil
    fetchNumber += 1
    objects = [:]
    lastSeenPath = nil
    retryTimer.set(nil)
    presence = .absent(reason)
    notify()
  }

  /// Requests all objects. The reply includes all changes signalled before it.
  private func fetch() {
    guard let owner else { return }
    fetchNumber += 1
    let number = fetchNumber
    bus.call(.call(owner, "/", DBusDaemon.objectManager, "GetManagedObjects"), milliseconds: 10_000) { [weak self] result in
      guard let self, number == fetchNumber else { return }
      switch result {
      case .success(let message):
        guard let all = message.body.first?.dictionary else {
          return fail("unexpected reply from BlueZ: \(message.body.first?.signature ?? "nothing")")
        }
        objects = [:]
        isFull = false
        presence = .present
        // Adapters first, then peripherals, then GATT tables, so that the limit drops the least important objects.
        for (path, interfaces) in all.sorted(by: { depth($0.key) < depth($1.key) }) { add(path, interfaces) }
        notify()
      case .failure(.refused(let name, _)) where name == "org.freedesktop.DBus.Error.AccessDenied":
        fail("permission denied by BlueZ: add the daemon's user to group bluetooth")
      case .failure(.disconnected): break
      case .failure(let error): fail("BlueZ does not respond (\(error.message)): systemctl status bluetooth")
      }
    }
  }

  private func fail(_ reason: String) {
    presence = .absent(reason)
    objects = [:]
    retryTimer.set(Clock.monotonic() + 10 * .second)
    notify()
  }

  // MARK: Signals

  private func received(_ message: DBusMessage) {
    guard message.kind == .signal else {
      if message.kind == .call, message.sender == owner, let reply = monitor.handle(message) { bus.send(reply) }
      return
    }
    if message.sender == DBusDaemon.name {
      guard message.member == "NameOwnerChanged", message.body.count == 3, message.body[0].string == Self.name else { return }
      return ownerChanged(to: message.body[2].string ?? "")
    }
    guard message.sender == owner, presence == .present else { return }
    switch (message.interface, message.member) {
    case (DBusDaemon.objectManager, "InterfacesAdded"):
      guard message.body.count == 2, let path = message.body[0].string else { return }
      add(path, message.body[1])
    case (DBusDaemon.objectManager, "InterfacesRemoved"):
      guard message.body.count == 2, let path = message.body[0].string, let names = message.body[1].strings else { return }
      for name in names { objects[path]?[name] = nil }
      if objects[path]?.isEmpty == true { objects[path] = nil }
      notify()
    case (DBusDaemon.properties, "PropertiesChanged"):
      guard message.body.count == 3, let path = message.path, let interface = message.body[0].string else { return }
      change(path, interface, set: message.body[1].dictionary ?? [:], invalid: message.body[2].strings ?? [])
    default: break
    }
  }

  private func add(_ path: String, _ interfaces: DBusValue) {
    // The GATT table of a peripheral that a link uses is stored even beyond the limit.
    let isNeeded = objects.count < 2 * Self.maxObjects && claims.keys.contains { path.hasPrefix($0) }
    guard objects[path] != nil || objects.count < Self.maxObjects || isNeeded else { return isFull = true }
    if interfaces.dictionary?[Peripheral.interface]?.dictionary?["RSSI"] != nil { advertised(path) }
    for (name, value) in interfaces.dictionary ?? [:] {
      guard let names = Self.storedProperties[name] else { continue }
      objects[path, default: [:]][name] = (value.dictionary ?? [:]).filter { names.contains($0.key) }
    }
    if interfaces.dictionary?[Peripheral.interface] == nil { notify() } else { notifySoon() }
  }

  private func change(_ path: String, _ interface: String, set: Properties, invalid: [String]) {
    if interface == Characteristic.interface, let value = set["Value"]?.bytes { notificationHandlers[path]?(value) }
    guard let names = Self.storedProperties[interface], objects[path]?[interface] != nil else { return }
    var hasChanged = false
    if set["RSSI"] != nil, interface == Peripheral.interface { advertised(path) }
    for (name, value) in set where names.contains(name) {
      objects[path]?[interface]?[name] = value
      hasChanged = true
    }
    for name in invalid where objects[path]?[interface]?.removeValue(forKey: name) != nil { hasChanged = true }
    if hasChanged, set.keys.allSatisfy({ $0 == "RSSI" || !names.contains($0) }), invalid.allSatisfy({ $0 == "RSSI" }) {
      notifySoon()
    } else if hasChanged {
      notify()
    }
  }

  private func advertised(_ peer: String) {
    lastSeenPath = peer
    monitor.advertised(peer)
  }

  private func notifySoon() {
    if !notifyTimer.isSet { notifyTimer.set(Clock.monotonic() + Self.rssiInterval) }
  }

  /// Notifies all observers in a later turn.
  func notify() {
    guard !isNotifying else { return }
    isNotifying = true
    notifyTimer.set(nil)
    Loop.post { [weak self] in
      guard let self else { return }
      isNotifying = false
      for (key, weak) in observers {
        if let observer = weak.observer { observer.blueZChanged() } else { observers[key] = nil }
      }
    }
  }
}

/// The number of components of a path.
private func depth(_ path: String) -> Int { path.utf8.count { $0 == UInt8(ascii: "/") } }
