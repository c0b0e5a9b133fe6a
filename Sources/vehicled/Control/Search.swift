// What a client that calls Scan is told: every serial port that may have an adapter on it, then whoever is heard on BLE,
// each at most once a second, until the time is over. Shares the search with links, which go on meanwhile.

import Glibc
import Protocols

@Loop final class Search: BlueZObserver {
  private let call: Call
  private let blueZ: BlueZ
  private let kinds: [Kind]
  /// When and how each peripheral, by its path, was last told of.
  private var told: [String: (at: Instant, name: String?)] = [:]
  /// The adapter that searches.
  private var adapter: String?
  private var isHeld = false
  private let end: Instant
  private lazy var timer = Timer { [weak self] _ in self?.timeIsUp() }

  private static let again: Nanoseconds = .second
  /// How long BlueZ may take to say what it knows.
  private static let timeout: Nanoseconds = 5 * .second
  private static let maxReported = 4096

  /// Begins to tell the caller; `transport` is `ble`, `serial`, or nil for both.
  static func begin(_ call: Call, transport: String?, seconds: Int, blueZ: BlueZ, kinds: [Kind]) {
    let search = Search(call, seconds: seconds, blueZ: blueZ, kinds: kinds)
    if transport != "ble" { for port in SerialPorts.all() { search.tell(port.path, port.name, nil, nil, transport: "serial") } }
    guard transport != "serial" else { return call.reply(Contract.Scan.Result(searching: false)) }
    call.cancel = { search.stop() }
    search.timer.set(min(search.end, Clock.monotonic() + timeout))
    blueZ.add(search)
    search.blueZChanged()
  }

  private init(_ call: Call, seconds: Int, blueZ: BlueZ, kinds: [Kind]) {
    self.call = call
    self.blueZ = blueZ
    self.kinds = kinds
    end = Clock.monotonic() + Int64(seconds) * .second
  }

  func blueZChanged() {
    switch blueZ.presence {
    case .unknown: return
    case .absent(let reason): return fail(reason)
    case .present: break
    }
    let names = blueZ.adapterNames
    guard let name = adapter ?? names.first(where: { blueZ.adapter(named: $0)?.isPowered == true }) ?? names.first else {
      return fail("there is no Bluetooth adapter: is it plugged in?")
    }
    guard let adapter = blueZ.adapter(named: name) else { return fail("the Bluetooth adapter \(name) is gone: was it unplugged?") }
    guard adapter.isPowered else { return fail("the Bluetooth adapter \(name) is switched off: bluetoothctl power on") }
    if self.adapter == nil {
      self.adapter = name
      timer.set(end)
      blueZ.discovery.begin(for: self, on: adapter.path)
    }
    if let trouble = blueZ.discovery.trouble[adapter.path] { return fail(trouble) }
    if blueZ.discovery.isHeld(adapter.path) != isHeld {
      isHeld.toggle()
      call.continue(Contract.Scan.Result(searching: true, reason: reason))
    }
    let now = Clock.monotonic()
    for found in blueZ.peripherals(of: adapter) where found.rssi != nil || found.isConnected {
      if let last = told[found.path], now - last.at < Self.again, last.name == found.name { continue }
      if told[found.path] == nil, told.count >= Self.maxReported { continue }
      told[found.path] = (now, found.name)
      if call.hasRoom { tell(found.address, found.name, found.rssi, kind(of: found), transport: "ble") }
    }
  }

  private func tell(_ address: String, _ name: String?, _ rssi: Int?, _ kind: String?, transport: String) {
    let found = Contract.Discovery(transport: transport, address: address, name: name, rssi: rssi, kind: kind, time: Int(Clock.wall()))
    call.continue(Contract.Scan.Result(found: found, searching: true, reason: reason))
  }

  private var reason: String? { isHeld ? "a connection is being made" : nil }

  /// The kind of device that it looks like.
  private func kind(of found: Peripheral) -> String? {
    func first(_ fits: (GATTRole) -> Bool) -> String? { kinds.first { $0.links.compactMap(\.gatt).contains(where: fits) }?.name }
    // Many kinds share a service; a name says more.
    return found.name.flatMap { name in first { $0.matches(name: name) } } ?? first { $0.matches(services: found.services) }
  }

  private func timeIsUp() {
    guard adapter != nil else { return fail("BlueZ does not answer: systemctl status bluetooth") }
    stop()
    call.reply(Contract.Scan.Result(searching: false))
  }

  private func fail(_ reason: String) {
    stop()
    call.fail(.deviceError(device: "", code: "bluetooth", message: reason))
  }

  private func stop() {
    timer.set(nil)
    blueZ.discovery.end(for: self)
    blueZ.remove(self)
  }
}

/// The serial ports of this machine that may have an adapter on them.
enum SerialPorts {
  /// The ports by path, with the names that udev gives them.
  static func all() -> [(path: String, name: String?)] {
    var names: [String: String] = [:]
    for name in Files.list("/dev/serial/by-id") {
      guard let path = realpath("/dev/serial/by-id/\(name)", nil) else { continue }
      names[String(cString: path)] = name
      free(path)
    }
    return Files.list("/dev").filter { name in ["ttyUSB", "ttyACM", "rfcomm"].contains { name.hasPrefix($0) } }
      .map { ("/dev/\($0)", names["/dev/\($0)"]) }
  }
}
