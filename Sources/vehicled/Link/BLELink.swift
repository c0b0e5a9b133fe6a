// A link to a Bluetooth Low Energy peer through BlueZ: scan, connect, read the GATT table, subscribe. The next step follows from
// BlueZ's current objects (`advance`), not from the order of its signals, so a restart of bluetoothd, a powered-off adapter or a
// lost peer is detected at every stage.

import DBus
import Protocols
import ServiceRuntime

@Loop final class BLELink: Link, BlueZObserver {
  private enum Stage {
    /// A dependency is missing, or the peer is not in range yet.
    case searching
    /// BlueZ is connecting to the peripheral with this path.
    case connecting(String)
    /// BlueZ is reading the peripheral's GATT table.
    case resolving(String)
    /// Subscribing to the characteristics.
    case subscribing(String)
    /// Probing the peer (only with `ble:auto`). The bytes are its reply so far.
    case probing(String, [UInt8])
    case up(String)
    case ended
  }

  private let target: BLETarget
  private let description: PeripheralDescription
  private let blueZ: BlueZ
  private weak var owner: (any LinkOwner)?
  private var stage = Stage.searching
  private(set) var waitReason: String?
  private let began = Clock.monotonic()
  private var isSearching = false
  /// When the first matching peer was found; nil while there is none.
  private var firstFound: Instant?
  private var peripheral: Peripheral?
  /// The RSSI in dBm when the peer was selected. BlueZ reports it only while it scans.
  private var rssiWhenFound: Int?
  private var channel: GATTChannel?
  private var hasRepeatedProbe = false
  /// Whether to disconnect the peer at the end: this link connected it, the URL selects it by name or address, or the link came up.
  private var disconnectsAtEnd = false
  private lazy var timer = Timer { [weak self] _ in self?.handleTimeout() }

  /// How long to look for further peers with a matching name before connecting, in case the name is ambiguous.
  private static let selectionDelay: Nanoseconds = 500 * .millisecond
  /// After this time, the link connects to a peer given by its address even without an advertisement: not all peers advertise.
  private static let connectUnseenAfter: Nanoseconds = 15 * .second
  /// The timeout for connecting. BlueZ gives up by itself after 40 s.
  private static let connectTimeout: Nanoseconds = 60 * .second
  private static let resolveTimeout: Nanoseconds = 30 * .second
  private static let subscribeTimeout: Nanoseconds = 20 * .second
  private static let probeTimeout: Nanoseconds = 3 * .second

  init(_ target: BLETarget, description: PeripheralDescription, blueZ: BlueZ, owner: any LinkOwner) {
    self.target = target
    self.description = description
    self.blueZ = blueZ
    self.owner = owner
    blueZ.add(self)
    Loop.post { [weak self] in self?.advance() }
  }

  func close() {
    owner = nil
    end()
  }

  func blueZChanged() { advance() }

  // MARK: Connecting

  private func advance() {
    switch stage {
    case .ended: break
    case .searching: search()
    case .connecting(let path): _ = requirePeripheral(path)
    case .resolving(let path):
      guard let peer = requirePeripheral(path) else { return }
      if !peer.isConnected { return fail("the peer disconnected while its services were being read") }
      if peer.areServicesResolved { subscribe(peer) }
    case .subscribing(let path), .probing(let path, _), .up(let path):
      guard let peer = requirePeripheral(path) else { return }
      if !peer.isConnected { return fail("connection lost: the peer may be out of range or powered off") }
      if channel?.isAvailable == false { fail("the peer's services have disappeared: it may be out of range or powered off") }
    }
  }

  /// Returns the peripheral, or fails the link if it or a dependency is missing.
  private func requirePeripheral(_ path: String) -> Peripheral? {
    if missingDependency == nil, let peer = blueZ.peripheral(path) { return peer }
    fail(missingDependency ?? "BlueZ has removed the peer")
    return nil
  }

  /// A message for the user if BlueZ or the adapter is missing, or if the adapter is powered off; otherwise nil.
  private var missingDependency: String? {
    switch blueZ.presence {
    case .unknown: return "waiting for BlueZ"
    case .absent(let reason): return reason
    case .present: break
    }
    guard let adapter = blueZ.adapter(named: target.adapter) else {
      let others = blueZ.adapterNames.filter { $0 != target.adapter }
      let remedy = others.isEmpty ? "check that it is plugged in" : "found \(others.joined(separator: ", ")); select one with adapter="
      return "no Bluetooth adapter \(target.adapter): \(remedy)"
    }
    return adapter.isPowered ? nil : "Bluetooth adapter \(target.adapter) is powered off: bluetoothctl power on"
  }

  private func search() {
    guard missingDependency == nil, let adapter = blueZ.adapter(named: target.adapter) else {
      stopSearching()
      return wait(for: missingDependency ?? "")
    }
    if !isSearching {
      isSearching = true
      blueZ.scanner.begin(for: self, on: adapter.path, isSearch: true)
      blueZ.monitor.begin(for: self, on: adapter.path) { _ in }
    }
    let now = Clock.monotonic()
    let connectsUnseen = now - began >= Self.connectUnseenAfter
    let matching = blueZ.peripherals(of: adapter).filter { target.matches(address: $0.address, name: $0.name, description: description) }
    let isAuto = target.match == .auto
    let inRange = matching.filter {
      !blueZ.isDisconnecting($0.path) && !blueZ.isClaimed($0.path, byOtherThan: self)
        && ($0.isConnected
          ? !isAuto || description.matches(services: $0.services) : isInRange($0, now) || connectsUnseen && target.isAddress)
    }
    let candidates = isAuto ? inRange.filter { blueZ.rejection(of: $0.address, at: now) == nil } : inRange
    guard let best = candidates.max(by: { ($0.isConnected ? 0 : $0.rssi ?? -200) < ($1.isConnected ? 0 : $1.rssi ?? -200) }) else {
      firstFound = nil
      if target.isAddress, !connectsUnseen { timer.set(began + Self.connectUnseenAfter) }
      if let claimed = matching.first(where: { blueZ.isClaimed($0.path, byOtherThan: self) }) {
        let remedy = target.isAddress ? "" : "; set the address of this device's peer"
        return wait(for: "\(claimed.label) is in use by another device\(remedy)")
      }
      if let retry = inRange.compactMap({ blueZ.rejection(of: $0.address, at: now) }).min(), let rejected = inRange.first {
        timer.set(retry)
        return wait(for: "\(rejected.label) was rejected; trying other peers before trying it again")
      }
      if blueZ.scanner.isPaused(adapter.path) {
        return wait(for: "scan paused while another connection is being made; looking for \(target.match.label)")
      }
      let limit = blueZ.isFull ? "; too many peripherals in range, some are ignored" : ""
      return wait(for: blueZ.scanner.failures[adapter.path] ?? "searching for \(target.match.label)\(limit)")
    }
    if !target.isAddress, !isAuto || !best.isConnected {
      let since = firstFound ?? now
      firstFound = since
      if now - since < Self.selectionDelay { return timer.set(since + Self.selectionDelay) }
      if !isAuto, candidates.count > 1 {
        let names = candidates.prefix(4).map(\.label).joined(separator: ", ")
        return wait(for: "\(candidates.count) peripherals match \(target.match.label): \(names); set the address of one")
      }
    }
    connect(best)
  }

  /// Whether the peer is advertising. At the end of a scan BlueZ clears RSSI, except for peers that the monitor reports.
  private func isInRange(_ peer: Peripheral, _ now: Instant) -> Bool {
    blueZ.monitor.isActive(peer.adapter) ? blueZ.monitor.hasRecentAdvertisement(from: peer.path, at: now) : peer.rssi != nil
  }

  private func connect(_ peer: Peripheral) {
    stopSearching()
    blueZ.claim(peer.path, for: self)
    peripheral = peer
    rssiWhenFound = peer.rssi
    timer.set(Clock.monotonic() + (peer.isConnected ? Self.resolveTimeout : Self.connectTimeout))
    disconnectsAtEnd = !peer.isConnected || target.match != .auto
    if peer.isConnected {
      stage = .resolving(peer.path)
      wait(for: "reading the services of \(peer.label)")
      return advance()
    }
    stage = .connecting(peer.path)
    wait(for: "connecting to \(peer.label)")
    blueZ.scanner.pause(for: self, on: peer.adapter)
    // This timeout is longer than `connectTimeout`, so `connectTimeout` ends the attempt.
    blueZ.call(peer.path, Peripheral.interface, "Connect", milliseconds: 90_000) { [weak self] result in
      guard let self, case .connecting(peer.path) = stage else { return }
      blueZ.scanner.resume(for: self)
      if case .failure(let error) = result, !error.isAlreadyConnected { return connectFailed(peer, error) }
      timer.set(Clock.monotonic() + Self.resolveTimeout)
      stage = .resolving(peer.path)
      wait(for: "reading the services of \(peer.label)")
      advance()
    }
  }

  private func connectFailed(_ peer: Peripheral, _ error: DBusError) {
    let (reason, isStale) = error.connectFailure
    if isStale, !peer.isPaired, blueZ.recordConnectFailure(peer.address) {
      blueZ.call(peer.adapter, Adapter.interface, "RemoveDevice", [.path(peer.path)])
    }
    fail("\(peer.label): \(reason.replacing("ADDRESS", with: peer.address))")
  }

  private func subscribe(_ peer: Peripheral) {
    stage = .subscribing(peer.path)
    peripheral = peer
    do throws(ValueError) {
      let choice = try GATTChoice(target, description, among: blueZ.characteristics(of: peer.path))
      let channel = GATTChannel(choice, description, blueZ) { [weak self] in
        self?.received($0)
      } failed: { [weak self] in
        self?.fail($0)
      }
      self.channel = channel
      timer.set(Clock.monotonic() + Self.subscribeTimeout)
      channel.open { [weak self] in self?.subscribed() }
    } catch {
      fail("\(peer.label): \(error)")
    }
  }

  /// Handles a completed subscription: brings the link up. With `ble:auto`, first probes the peer.
  private func subscribed() {
    guard case .subscribing(let path) = stage else { return }
    guard target.match == .auto, let probe = description.probe else { return cameUp(path) }
    stage = .probing(path, [])
    timer.set(Clock.monotonic() + Self.probeTimeout)
    wait(for: "probing \(peripheral?.label ?? "the peer")")
    channel?.send(probe.request)
  }

  private func cameUp(_ path: String) {
    stage = .up(path)
    disconnectsAtEnd = true
    timer.set(nil)
    waitReason = nil
    blueZ.recordConnectSuccess(peripheral?.address ?? "")
    owner?.linkCameUp(maximumSend: channel?.maxMessageSize)
  }

  private func handleTimeout() {
    switch stage {
    case .searching: search()
    case .connecting:
      fail("\(peripheral?.label ?? "the peer") does not respond: check that it is in range, powered on and not connected to a phone")
    case .resolving: fail("\(peripheral?.label ?? "the peer") does not return its services")
    case .subscribing: fail("\(peripheral?.label ?? "the peer") does not respond to the subscription")
    case .probing where !hasRepeatedProbe:
      // The probe is repeated once, because the first notification may have been lost.
      hasRepeatedProbe = true
      timer.set(Clock.monotonic() + Self.probeTimeout)
      if let probe = description.probe { channel?.send(probe.request) }
    case .probing: reject("it does not respond")
    case .up, .ended: break
    }
  }

  private func reject(_ reason: String) {
    blueZ.reject(peripheral?.address ?? "", atLeastUntil: Clock.monotonic() + 600 * .second)
    fail("\(peripheral?.label ?? "the peer") is not a supported adapter: \(reason)")
  }

  // MARK: Connected

  private func received(_ bytes: [UInt8]) {
    switch stage {
    case .up: owner?.linkReceived(bytes)
    case .probing(let path, let before):
      let all = before + bytes
      stage = .probing(path, all)
      switch description.probe?.accepts(all) {
      case true: cameUp(path)
      case false: reject("it replied \(quoted(String(decoding: all.prefix(40), as: UTF8.self)))")
      default: break
      }
    default: break
    }
  }

  var descriptor: CInt? { channel?.descriptor }

  func send(_ bytes: [UInt8], id: SendID?) {
    guard let id else { return channel?.send(bytes) ?? () }
    channel?.send(bytes) { [weak self] in self?.owner?.linkSent(id, failure: $0) }
  }

  var details: [String: String] {
    var details: [String: String] = [:]
    if let peripheral, !isSearching { details["peer"] = peripheral.label }
    if let rssiWhenFound, !isSearching { details["signal"] = "\(rssiWhenFound) dBm when found" }
    if isSearching {
      details["searching"] = "\((Clock.monotonic() - began) / .second) s"
      details["last-seen"] = blueZ.lastSeen.map { "\($0.label)\($0.rssi.map { ", \($0) dBm" } ?? "")" } ?? "nothing"
    }
    if case .up = stage, let channel { details.merge(channel.details) { $1 } }
    return details
  }

  // MARK: Ending

  private var isUp: Bool { if case .up = stage { true } else { false } }

  private func wait(for reason: String) {
    guard waitReason != reason else { return }
    waitReason = reason
    owner?.linkDetailsChanged()
  }

  private func fail(_ reason: String) {
    let owner = owner
    self.owner = nil
    // With `ble:auto` a peer that fails before the link is up is skipped for a while in favour of others.
    if target.match == .auto, let peripheral, !isUp, missingDependency == nil {
      blueZ.reject(peripheral.address, atLeastUntil: Clock.monotonic() + 60 * .second)
    }
    end()
    owner?.linkWentDown(reason, final: false)
  }

  /// Ends the connection or the attempt to connect, and releases the peripheral and the scan.
  private func end() {
    switch stage {
    case .connecting(let path), .resolving(let path), .subscribing(let path), .probing(let path, _), .up(let path):
      if disconnectsAtEnd { blueZ.disconnect(path) }
    case .searching, .ended: break
    }
    stage = .ended
    timer.set(nil)
    stopSearching()
    blueZ.scanner.resume(for: self)
    blueZ.release(self)
    blueZ.remove(self)
    channel?.close()
  }

  private func stopSearching() {
    guard isSearching else { return }
    isSearching = false
    blueZ.scanner.end(for: self)
    blueZ.monitor.end(for: self)
  }
}

extension BLETarget {
  fileprivate var isAddress: Bool { if case .address = match { true } else { false } }
}

extension DBusError {
  fileprivate var isAlreadyConnected: Bool { if case .refused("org.bluez.Error.AlreadyConnected", _) = self { true } else { false } }
}
