// The results of Scan: every serial port that may have an adapter, then the BLE peripherals in range, each at most once a
// second, until the requested time has elapsed. Shares the BLE scan with the links, which continue to work.

import Glibc
import Protocols
import ServiceRuntime
import Varlink

@Loop final class DeviceScan: BlueZObserver {
  private let call: Call
  private let blueZ: BlueZ
  private let kinds: [Kind]
  /// When and with which name each peripheral was last reported, by object path.
  private var reported: [String: (at: Instant, name: String?)] = [:]
  /// The adapter that scans.
  private var adapter: String?
  private var isPaused = false
  private let end: Instant
  private lazy var timer = Timer { [weak self] _ in self?.handleTimeout() }

  private static let reportInterval: Nanoseconds = .second
  /// How long BlueZ may take to return its objects.
  private static let timeout: Nanoseconds = 5 * .second
  private static let maxReported = 4096

  /// Starts to report to the caller; `transport` is `ble`, `serial`, or nil for both.
  static func begin(_ call: Call, transport: String?, seconds: Int, blueZ: BlueZ, kinds: [Kind]) {
    let scan = DeviceScan(call, seconds: seconds, blueZ: blueZ, kinds: kinds)
    if transport != "ble" { for port in SerialPorts.all() { scan.report(port.path, port.name, nil, nil, transport: "serial") } }
    guard transport != "serial" else { return call.reply(Contract.Scan.Result(searching: false)) }
    call.cancel = { scan.stop() }
    scan.timer.set(min(scan.end, Clock.monotonic() + timeout))
    blueZ.add(scan)
    scan.blueZChanged()
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
      return fail("no Bluetooth adapter: check that it is plugged in")
    }
    guard let adapter = blueZ.adapter(named: name) else {
      return fail("Bluetooth adapter \(name) has disappeared: check that it is plugged in")
    }
    guard adapter.isPowered else { return fail("Bluetooth adapter \(name) is powered off: bluetoothctl power on") }
    if self.adapter == nil {
      self.adapter = name
      timer.set(end)
      blueZ.scanner.begin(for: self, on: adapter.path)
    }
    if let failure = blueZ.scanner.failures[adapter.path] { return fail(failure) }
    if blueZ.scanner.isPaused(adapter.path) != isPaused {
      isPaused.toggle()
      call.continue(Contract.Scan.Result(searching: true, reason: reason))
    }
    let now = Clock.monotonic()
    for peripheral in blueZ.peripherals(of: adapter) where peripheral.rssi != nil || peripheral.isConnected {
      if let last = reported[peripheral.path], now - last.at < Self.reportInterval, last.name == peripheral.name { continue }
      if reported[peripheral.path] == nil, reported.count >= Self.maxReported { continue }
      reported[peripheral.path] = (now, peripheral.name)
      if call.hasRoom { report(peripheral.address, peripheral.name, peripheral.rssi, kind(of: peripheral), transport: "ble") }
    }
  }

  private func report(_ address: String, _ name: String?, _ rssi: Int?, _ kind: String?, transport: String) {
    let discovery = Contract.Discovery(transport: transport, address: address, name: name, rssi: rssi, kind: kind, time: Int(Clock.wall()))
    call.continue(Contract.Scan.Result(found: discovery, searching: true, reason: reason))
  }

  private var reason: String? { isPaused ? "paused while a connection is made" : nil }

  /// The kind of device that a peripheral looks like.
  private func kind(of peripheral: Peripheral) -> String? {
    func first(_ fits: (PeripheralDescription) -> Bool) -> String? {
      kinds.first { $0.links.compactMap(\.gatt).contains(where: fits) }?.name
    }
    // Several kinds use the same service, so the name is checked first.
    return peripheral.name.flatMap { name in first { $0.matches(name: name) } } ?? first { $0.matches(services: peripheral.services) }
  }

  private func handleTimeout() {
    guard adapter != nil else { return fail("BlueZ does not respond: systemctl status bluetooth") }
    stop()
    call.reply(Contract.Scan.Result(searching: false))
  }

  private func fail(_ reason: String) {
    stop()
    call.fail(.deviceError(device: "", code: .bluetooth, message: reason))
  }

  private func stop() {
    timer.set(nil)
    blueZ.scanner.end(for: self)
    blueZ.remove(self)
  }
}

/// The serial ports of this system that may have an adapter.
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
