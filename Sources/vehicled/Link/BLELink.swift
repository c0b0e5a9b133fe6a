// A peer on Bluetooth Low Energy, through BlueZ: searched for, connected, its GATT table read, its characteristics taken.
// What is due follows from what BlueZ knows now (`advance`), never from the order in which it said so; so a restart of
// bluetoothd, an adapter that is switched off or a peer that vanishes is noticed wherever the link stands.

import Bus
import Protocols

@Loop final class BLELink: Link, BlueZObserver {
  private enum Stage {
    /// Something is missing, or the peer is not heard yet.
    case searching
    /// BlueZ makes the connection, to the peripheral of this path.
    case connecting(String)
    /// It reads the GATT table.
    case resolving(String)
    /// The characteristics are taken.
    case subscribing(String)
    /// Whoever was guessed is asked what it is; this came back so far.
    case probing(String, [UInt8])
    case up(String)
    case ended
  }

  private let target: BLETarget
  private let role: GATTRole
  private let blueZ: BlueZ
  private weak var owner: (any LinkOwner)?
  private var stage = Stage.searching
  /// What it waits for, in a person's words.
  private(set) var words: String?
  private let began = Clock.monotonic()
  private var isSearching = false
  private var firstHeard: Instant?
  private var peripheral: Peripheral?
  /// dBm; BlueZ tells it only while it searches.
  private var signal: Int?
  private var channel: GATTChannel?
  private var hasAskedAgain = false
  /// The connection is ours to end: we made it, or it is to the peer that is meant.
  private var isOurs = false
  private lazy var timer = Timer { [weak self] _ in self?.timeIsUp() }

  /// Namesakes have this long to be heard as well, before one is taken for the one that is meant.
  private static let settling: Nanoseconds = 500 * .millisecond
  /// After this long a peer that is known by its address and not heard is called blindly: not all advertise.
  private static let blindAfter: Nanoseconds = 15 * .second
  /// BlueZ gives up by itself after 40 s.
  private static let connectTimeout: Nanoseconds = 60 * .second
  private static let resolveTimeout: Nanoseconds = 30 * .second
  private static let subscribeTimeout: Nanoseconds = 20 * .second
  private static let probeTimeout: Nanoseconds = 3 * .second

  init(_ target: BLETarget, role: GATTRole, blueZ: BlueZ, owner: any LinkOwner) {
    self.target = target
    self.role = role
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

  // MARK: Getting there

  private func advance() {
    switch stage {
    case .ended: break
    case .searching: search()
    case .connecting(let path): _ = present(path)
    case .resolving(let path):
      guard let found = present(path) else { return }
      if !found.isConnected { return fail("it hung up while its services were read") }
      if found.areServicesResolved { subscribe(found) }
    case .subscribing(let path), .probing(let path, _), .up(let path):
      guard let found = present(path) else { return }
      if !found.isConnected { return fail("the connection is lost: out of range, or switched off?") }
      if channel?.isThere == false { fail("its services went away: out of range, or switched off?") }
    }
  }

  /// The peripheral, unless what it is reached through is gone.
  private func present(_ path: String) -> Peripheral? {
    if let missing { fail(missing) } else if let found = blueZ.peripheral(path) { return found } else { fail("BlueZ has forgotten it") }
    return nil
  }

  /// What keeps anything from being reached.
  private var missing: String? {
    switch blueZ.presence {
    case .unknown: return "looking for BlueZ"
    case .absent(let reason): return reason
    case .present: break
    }
    guard let adapter = blueZ.adapter(named: target.adapter) else {
      let others = blueZ.adapterNames.filter { $0 != target.adapter }
      let remedy = others.isEmpty ? "is it plugged in?" : "there is \(others.joined(separator: ", ")); name it with adapter="
      return "there is no Bluetooth adapter \(target.adapter): \(remedy)"
    }
    return adapter.isPowered ? nil : "the Bluetooth adapter \(target.adapter) is switched off: bluetoothctl power on"
  }

  private func search() {
    guard missing == nil, let adapter = blueZ.adapter(named: target.adapter) else {
      stopSearching()
      return wait(for: missing ?? "")
    }
    if !isSearching {
      isSearching = true
      blueZ.discovery.begin(for: self, on: adapter.path)
    }
    let now = Clock.monotonic()
    let isBlind = now - began >= Self.blindAfter
    let meant = blueZ.peripherals(of: adapter).filter { target.means(address: $0.address, name: $0.name, role: role) }
    let isAuto = target.match == .auto
    let heard = meant.filter {
      !blueZ.isLeaving($0.path) && !blueZ.isHeld($0.path, byOtherThan: self)
        && ($0.isConnected ? !isAuto || role.matches(services: $0.services) : $0.rssi != nil || isBlind && target.isAddress)
    }
    let found = isAuto ? heard.filter { blueZ.rejection(of: $0.address, at: now) == nil } : heard
    guard let best = found.max(by: { ($0.isConnected ? 0 : $0.rssi ?? -200) < ($1.isConnected ? 0 : $1.rssi ?? -200) }) else {
      firstHeard = nil
      if target.isAddress, !isBlind { timer.set(began + Self.blindAfter) }
      if let taken = meant.first(where: { blueZ.isHeld($0.path, byOtherThan: self) }) {
        return wait(for: "\(taken.words) is another device's already" + (target.isAddress ? "" : "; name this one's by its address"))
      }
      if let again = heard.compactMap({ blueZ.rejection(of: $0.address, at: now) }).min(), let rejected = heard.first {
        timer.set(again)
        return wait(for: "\(rejected.words) was no use; it is tried again in a while, others meanwhile")
      }
      if blueZ.discovery.isHeld(adapter.path) {
        return wait(for: "another connection is being made; then searching for \(target.match.words)")
      }
      let crowd = blueZ.isFull ? " among more peripherals than are looked at" : ""
      return wait(for: blueZ.discovery.trouble[adapter.path] ?? "searching for \(target.match.words)\(crowd)")
    }
    if !target.isAddress, !isAuto || !best.isConnected {
      let since = firstHeard ?? now
      firstHeard = since
      if now - since < Self.settling { return timer.set(since + Self.settling) }
      if !isAuto, found.count > 1 {
        let names = found.prefix(4).map(\.words).joined(separator: ", ")
        return wait(for: "\(found.count) peripherals are \(target.match.words): \(names); name one by its address")
      }
    }
    connect(best)
  }

  private func connect(_ found: Peripheral) {
    stopSearching()
    blueZ.hold(found.path, for: self)
    peripheral = found
    signal = found.rssi
    timer.set(Clock.monotonic() + (found.isConnected ? Self.resolveTimeout : Self.connectTimeout))
    isOurs = !found.isConnected || target.match != .auto
    if found.isConnected {
      stage = .resolving(found.path)
      wait(for: "reading the services of \(found.words)")
      return advance()
    }
    stage = .connecting(found.path)
    wait(for: "connecting to \(found.words)")
    blueZ.discovery.hold(for: self, on: found.adapter)
    // Ours is the shorter patience: the call itself must outlive it.
    blueZ.call(found.path, Peripheral.interface, "Connect", milliseconds: 90_000) { [weak self] result in
      guard let self, case .connecting(found.path) = stage else { return }
      blueZ.discovery.resume(for: self)
      if case .failure(let error) = result, !error.isAlreadyConnected { return notConnected(found, error) }
      timer.set(Clock.monotonic() + Self.resolveTimeout)
      stage = .resolving(found.path)
      wait(for: "reading the services of \(found.words)")
      advance()
    }
  }

  private func notConnected(_ found: Peripheral, _ error: BusError) {
    let (reason, isStale) = BLEWords.connecting(error)
    if isStale, !found.isPaired, blueZ.failedAgain(found.address) {
      blueZ.call(found.adapter, Adapter.interface, "RemoveDevice", [.path(found.path)])
    }
    fail("\(found.words): \(reason.replacing("ADDRESS", with: found.address))")
  }

  private func subscribe(_ found: Peripheral) {
    stage = .subscribing(found.path)
    peripheral = found
    do throws(ValueError) {
      let choice = try GATTChoice(target, role, among: blueZ.characteristics(of: found.path))
      let channel = GATTChannel(choice, role, blueZ) { [weak self] in
        self?.received($0)
      } failed: { [weak self] in
        self?.fail($0)
      }
      self.channel = channel
      timer.set(Clock.monotonic() + Self.subscribeTimeout)
      channel.open { [weak self] in self?.ready() }
    } catch {
      fail("\(found.words): \(error)")
    }
  }

  private func ready() {
    guard case .subscribing(let path) = stage else { return }
    guard target.match == .auto, let probe = role.probe else { return cameUp(path) }
    stage = .probing(path, [])
    timer.set(Clock.monotonic() + Self.probeTimeout)
    wait(for: "asking \(peripheral?.words ?? "it") what it is")
    channel?.send(probe.question)
  }

  private func cameUp(_ path: String) {
    stage = .up(path)
    isOurs = true
    timer.set(nil)
    words = nil
    blueZ.succeeded(peripheral?.address ?? "")
    owner?.linkCameUp(maximumSend: channel?.maximum)
  }

  private func timeIsUp() {
    switch stage {
    case .searching: search()
    case .connecting: fail("\(peripheral?.words ?? "it") does not answer: is it near, switched on, and free of other phones?")
    case .resolving: fail("\(peripheral?.words ?? "it") does not tell its services")
    case .subscribing: fail("\(peripheral?.words ?? "it") does not let us listen or write")
    case .probing where !hasAskedAgain:
      // A notification may have been lost.
      hasAskedAgain = true
      timer.set(Clock.monotonic() + Self.probeTimeout)
      if let probe = role.probe { channel?.send(probe.question) }
    case .probing: reject("it does not answer")
    case .up, .ended: break
    }
  }

  private func reject(_ why: String) {
    blueZ.reject(peripheral?.address ?? "", atLeastUntil: Clock.monotonic() + 600 * .second)
    fail("\(peripheral?.words ?? "it") is not what is searched for: \(why)")
  }

  // MARK: Being there

  private func received(_ bytes: [UInt8]) {
    switch stage {
    case .up: owner?.linkReceived(bytes)
    case .probing(let path, let before):
      let all = before + bytes
      stage = .probing(path, all)
      switch role.probe?.accepts(all) {
      case true: cameUp(path)
      case false: reject("it answers \(quoted(String(decoding: all.prefix(40), as: UTF8.self)))")
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
    if let peripheral, !isSearching { details["peer"] = peripheral.words }
    if let signal, !isSearching { details["signal"] = "\(signal) dBm when it was found" }
    if isSearching {
      details["searched"] = "\((Clock.monotonic() - began) / .second) s"
      details["heard"] = blueZ.lastHeard.map { "\($0.words)\($0.rssi.map { ", \($0) dBm" } ?? "")" } ?? "nothing"
    }
    if case .up = stage, let channel { details.merge(channel.details) { $1 } }
    return details
  }

  // MARK: Ending

  private var isUp: Bool { if case .up = stage { true } else { false } }

  private func wait(for reason: String) {
    guard words != reason else { return }
    words = reason
    owner?.linkHasNews()
  }

  private func fail(_ reason: String) {
    let owner = owner
    self.owner = nil
    // Whoever was guessed and is of no use makes way for the next for a while.
    if target.match == .auto, let peripheral, !isUp, missing == nil {
      blueZ.reject(peripheral.address, atLeastUntil: Clock.monotonic() + 60 * .second)
    }
    end()
    owner?.linkWentDown(reason, final: false)
  }

  /// Lets go of everything; a connection that was made or is being made is ended.
  private func end() {
    switch stage {
    case .connecting(let path), .resolving(let path), .subscribing(let path), .probing(let path, _), .up(let path):
      if isOurs { blueZ.disconnect(path) }
    case .searching, .ended: break
    }
    stage = .ended
    timer.set(nil)
    stopSearching()
    blueZ.discovery.resume(for: self)
    blueZ.release(self)
    blueZ.remove(self)
    channel?.close()
  }

  private func stopSearching() {
    guard isSearching else { return }
    isSearching = false
    blueZ.discovery.end(for: self)
  }
}

extension BLETarget {
  fileprivate var isAddress: Bool { if case .address = match { true } else { false } }
}

extension BusError {
  fileprivate var isAlreadyConnected: Bool { if case .refused("org.bluez.Error.AlreadyConnected", _) = self { true } else { false } }
}
