// What BlueZ knows, as it tells it: adapters, peripherals and their GATT tables, kept in step by its signals. Only what
// is needed here is kept, and only from BlueZ itself: anybody on the bus can send a signal.
// Facts: BlueZ's doc/adapter-api.txt, device-api.txt, gatt-api.txt (5.66); the D-Bus specification, ObjectManager.

import Bus
import Protocols

/// Whoever wants to know that something about Bluetooth changed. Told once a turn, however much changed.
@Loop protocol BlueZObserver: AnyObject {
  func blueZChanged()
}

@Loop final class BlueZ {
  typealias Properties = [String: BusValue]

  /// Whether there is somebody to talk to.
  enum Presence: Equatable {
    /// Not looked for yet, or about to be found.
    case unknown
    case absent(String)
    case present
  }

  private(set) var presence = Presence.unknown
  /// Interfaces and their properties by object path.
  private(set) var objects: [String: [String: Properties]] = [:]
  /// A search that all share.
  private(set) lazy var discovery = Discovery(self)

  /// Who is told of a characteristic's notifications, by its path.
  var notified: [String: @Loop ([UInt8]) -> Void] = [:]

  /// Which link has which peripheral, by its path.
  private var holders: [String: ObjectIdentifier] = [:]
  /// Peripherals, by path, whose connection is being ended.
  private var leaving: Set<String> = []
  /// Until when a peer, by address, that turned out to be something else is left alone.
  private var rejected: [String: Instant] = [:]
  /// How often in a row a peer, by address, could not be connected.
  private var failures: [String: Int] = [:]
  private var heardPath: String?
  /// Some of what BlueZ knows is not kept: there is too much of it.
  private(set) var isFull = false

  private let bus: SystemBus
  private var owner: String? { didSet { bus.audible = owner } }
  /// Which request for all objects is the last one.
  private var request = 0
  private var observers: [ObjectIdentifier: Weak] = [:]
  private var isTelling = false
  private lazy var again = Timer { [weak self] _ in self?.findOwner() }
  private lazy var soon = Timer { [weak self] _ in self?.tell() }

  private struct Weak {
    weak var observer: (any BlueZObserver)?
  }

  static let name = "org.bluez"
  /// What is kept of each interface.
  private static let kept: [String: Set<String>] = [
    "org.bluez.Adapter1": ["Address", "Powered", "Discovering"],
    "org.bluez.Device1": ["Address", "Name", "RSSI", "Paired", "Connected", "ServicesResolved", "Adapter", "UUIDs"],
    "org.bluez.GattService1": ["UUID"],
    "org.bluez.GattCharacteristic1": ["UUID", "Service", "Flags", "MTU", "NotifyAcquired", "WriteAcquired"],
  ]
  private static let maxObjects = 8192
  /// Signal strengths are told no more often than this: a crowd of peripherals says hundreds a second.
  private static let rest: Nanoseconds = 100 * .millisecond

  init(_ bus: SystemBus) {
    self.bus = bus
    bus.changed = { [unowned self] in busChanged() }
    bus.received = { [unowned self] in received($0) }
  }

  /// Tells the observer of changes from now on, and connects if nobody needed BlueZ before.
  func add(_ observer: any BlueZObserver) {
    observers[ObjectIdentifier(observer)] = Weak(observer: observer)
    // What was so when somebody last tried may be so no more.
    if bus.words != nil { presence = .unknown }
    bus.open()
  }

  func remove(_ observer: any BlueZObserver) { observers[ObjectIdentifier(observer)] = nil }

  /// Calls a method of an object of BlueZ.
  func call(
    _ path: String, _ interface: String, _ member: String, _ body: [BusValue] = [], milliseconds: Int = 25_000,
    then reply: @escaping @Loop @Sendable (Result<BusMessage, BusError>) -> Void = { _ in }
  ) {
    let destination = owner ?? Self.name
    bus.call(.call(destination, path, interface, member, body), milliseconds: milliseconds, then: reply)
  }

  /// Lets what was asked for reach BlueZ, then ends the connection: BlueZ ends our searches with it.
  func close() async { await bus.close() }

  // MARK: What attempts have shown

  /// The peripheral that was heard last.
  var lastHeard: Peripheral? { heardPath.flatMap(peripheral) }

  func isLeaving(_ path: String) -> Bool { leaving.contains(path) }
  /// Until when the peer is left alone, where it is.
  func rejection(of address: String, at now: Instant) -> Instant? { rejected[address].flatMap { now < $0 ? $0 : nil } }
  func reject(_ address: String, atLeastUntil moment: Instant) {
    let now = Clock.monotonic()
    rejected = rejected.filter { $0.value > now }
    rejected[address] = max(moment, rejected[address] ?? .min)
  }
  func succeeded(_ address: String) { failures[address] = nil }

  /// Whether another link has the peripheral: it is not to be touched.
  func isHeld(_ path: String, byOtherThan link: AnyObject) -> Bool { holders[path].map { $0 != ObjectIdentifier(link) } ?? false }
  func hold(_ path: String, for link: AnyObject) { holders[path] = ObjectIdentifier(link) }
  func release(_ link: AnyObject) { holders = holders.filter { $0.value != ObjectIdentifier(link) } }

  /// Counts a failed connect; true for every third in a row.
  func failedAgain(_ address: String) -> Bool {
    failures[address, default: 0] += 1
    return failures[address, default: 0] % 3 == 0
  }

  /// Ends a connection, or the making of one.
  func disconnect(_ path: String) {
    guard leaving.insert(path).inserted else { return }
    call(path, Peripheral.interface, "Disconnect") { [weak self] _ in
      self?.leaving.remove(path)
      self?.tell()
    }
  }

  // MARK: Coming and going

  private func busChanged() {
    guard bus.state == .up else { return lose("no message bus (\(bus.words ?? "closed")): sudo systemctl start dbus") }
    let rules = [
      "type='signal',sender='\(DBus.name)',interface='\(DBus.name)',member='NameOwnerChanged',arg0='\(Self.name)'",
      "type='signal',sender='\(Self.name)',interface='\(DBus.objectManager)'",
      "type='signal',sender='\(Self.name)',interface='\(DBus.properties)',member='PropertiesChanged'",
    ]
    for rule in rules { bus.call(.call(DBus.name, DBus.path, DBus.name, "AddMatch", [.string(rule)])) { _ in } }
    findOwner()
  }

  private func findOwner() {
    guard bus.state == .up else { return }
    bus.call(.call(DBus.name, DBus.path, DBus.name, "GetNameOwner", [.string(Self.name)]), milliseconds: 10_000) { [weak self] result in
      switch result {
      case .success(let message): self?.ownerIs(message.body.first?.string ?? "")
      case .failure(.refused("org.freedesktop.DBus.Error.NameHasNoOwner", _)): self?.ownerIs("")
      case .failure(.disconnected): break
      case .failure(let error): self?.trouble("the message bus does not say whether BlueZ runs: \(error.words)")
      }
    }
  }

  private func ownerIs(_ new: String) {
    guard !new.isEmpty else { return lose("BlueZ is not running: systemctl start bluetooth") }
    owner = new
    fetch()
  }

  private func lose(_ reason: String) {
    owner = nil
    request += 1
    objects = [:]
    heardPath = nil
    again.set(nil)
    presence = .absent(reason)
    tell()
  }

  /// Asks for everything. What BlueZ tells before the answer is in the answer.
  private func fetch() {
    guard let owner else { return }
    request += 1
    let mine = request
    bus.call(.call(owner, "/", DBus.objectManager, "GetManagedObjects"), milliseconds: 10_000) { [weak self] result in
      guard let self, mine == request else { return }
      switch result {
      case .success(let message):
        guard let all = message.body.first?.dictionary else {
          return trouble("BlueZ answers what it should not: \(message.body.first?.signature ?? "nothing")")
        }
        objects = [:]
        isFull = false
        presence = .present
        // Adapters before peripherals before their tables: what is too much is what is least needed.
        for (path, interfaces) in all.sorted(by: { depth($0.key) < depth($1.key) }) { add(path, interfaces) }
        tell()
      case .failure(.refused(let name, _)) where name == "org.freedesktop.DBus.Error.AccessDenied":
        trouble("no permission to use Bluetooth: add this user to group bluetooth")
      case .failure(.disconnected): break
      case .failure(let error): trouble("BlueZ does not answer (\(error.words)): systemctl status bluetooth")
      }
    }
  }

  private func trouble(_ words: String) {
    presence = .absent(words)
    objects = [:]
    again.set(Clock.monotonic() + 10 * .second)
    tell()
  }

  // MARK: What BlueZ tells

  private func received(_ message: BusMessage) {
    guard message.kind == .signal else { return }
    if message.sender == DBus.name {
      guard message.member == "NameOwnerChanged", message.body.count == 3, message.body[0].string == Self.name else { return }
      return ownerIs(message.body[2].string ?? "")
    }
    guard message.sender == owner, presence == .present else { return }
    switch (message.interface, message.member) {
    case (DBus.objectManager, "InterfacesAdded"):
      guard message.body.count == 2, let path = message.body[0].string else { return }
      add(path, message.body[1])
    case (DBus.objectManager, "InterfacesRemoved"):
      guard message.body.count == 2, let path = message.body[0].string, let names = message.body[1].strings else { return }
      for name in names { objects[path]?[name] = nil }
      if objects[path]?.isEmpty == true { objects[path] = nil }
      tell()
    case (DBus.properties, "PropertiesChanged"):
      guard message.body.count == 3, let path = message.path, let interface = message.body[0].string else { return }
      change(path, interface, set: message.body[1].dictionary ?? [:], invalid: message.body[2].strings ?? [])
    default: break
    }
  }

  private func add(_ path: String, _ interfaces: BusValue) {
    // The table of a peripheral that a link has is needed, however many others are around.
    let isNeeded = objects.count < 2 * Self.maxObjects && holders.keys.contains { path.hasPrefix($0) }
    guard objects[path] != nil || objects.count < Self.maxObjects || isNeeded else { return isFull = true }
    if interfaces.dictionary?[Peripheral.interface]?.dictionary?["RSSI"] != nil { heardPath = path }
    for (name, value) in interfaces.dictionary ?? [:] {
      guard let kept = Self.kept[name] else { continue }
      objects[path, default: [:]][name] = (value.dictionary ?? [:]).filter { kept.contains($0.key) }
    }
    if interfaces.dictionary?[Peripheral.interface] == nil { tell() } else { tellSoon() }
  }

  private func change(_ path: String, _ interface: String, set: Properties, invalid: [String]) {
    if interface == Characteristic.interface, let value = set["Value"]?.bytes { notified[path]?(value) }
    guard let kept = Self.kept[interface], objects[path]?[interface] != nil else { return }
    var isNews = false
    if set["RSSI"] != nil, interface == Peripheral.interface { heardPath = path }
    for (name, value) in set where kept.contains(name) {
      objects[path]?[interface]?[name] = value
      isNews = true
    }
    for name in invalid where objects[path]?[interface]?.removeValue(forKey: name) != nil { isNews = true }
    if isNews, set.keys.allSatisfy({ $0 == "RSSI" || !kept.contains($0) }), invalid.allSatisfy({ $0 == "RSSI" }) {
      tellSoon()
    } else if isNews {
      tell()
    }
  }

  private func tellSoon() {
    if !soon.isSet { soon.set(Clock.monotonic() + Self.rest) }
  }

  /// Tells all observers in a later turn.
  func tell() {
    guard !isTelling else { return }
    isTelling = true
    soon.set(nil)
    Loop.post { [weak self] in
      guard let self else { return }
      isTelling = false
      for (key, weak) in observers {
        if let observer = weak.observer { observer.blueZChanged() } else { observers[key] = nil }
      }
    }
  }
}

/// How many names a path has.
private func depth(_ path: String) -> Int { path.utf8.count { $0 == UInt8(ascii: "/") } }
