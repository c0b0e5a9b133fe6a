// One search an adapter for all who want one: begun with the first, ended with the last, held for a while when a connection
// is made (many controllers cannot do both), begun anew when the adapter comes back. BlueZ ends it with our connection.

import Bus
import Protocols

@Loop final class Discovery: BlueZObserver {
  private enum Activity {
    case idle
    /// A call to BlueZ is under way.
    case busy
    /// `confirmed`: BlueZ has said itself that it searches.
    case active(confirmed: Bool)
  }

  private unowned let blueZ: BlueZ
  private var searchers: [ObjectIdentifier: String] = [:]
  /// Whoever connects, on which adapter, and until when the search waits for that.
  private var holders: [ObjectIdentifier: (adapter: String, until: Instant)] = [:]
  private var activities: [String: Activity] = [:]
  private var waits: [String: Nanoseconds] = [:]
  /// Adapters whose search is begun anew a little later.
  private var resting: Set<String> = []
  /// Why an adapter, by its path, cannot search although it should.
  private(set) var trouble: [String: String] = [:]
  private lazy var release = Timer { [weak self] in self?.releaseHolders($0) }

  private static let maxWait: Nanoseconds = 16 * .second
  /// BlueZ says that it searches well before this long after it agreed to.
  private static let maxStartDuration: Nanoseconds = 5 * .second
  /// A peer that advertises is connected well before; one that is not there shall not keep others from being found.
  private static let maxHoldDuration: Nanoseconds = 10 * .second

  init(_ blueZ: BlueZ) { self.blueZ = blueZ }

  /// Searches on the adapter of this path for as long as the searcher wants.
  func begin(for searcher: AnyObject, on adapter: String) {
    if searchers.isEmpty { blueZ.add(self) }
    searchers[ObjectIdentifier(searcher)] = adapter
    activities[adapter] = activities[adapter] ?? .idle
    advance(adapter)
  }

  func end(for searcher: AnyObject) {
    guard let adapter = searchers.removeValue(forKey: ObjectIdentifier(searcher)) else { return }
    advance(adapter)
    if searchers.isEmpty, activities.isEmpty { blueZ.remove(self) }
  }

  /// Holds the search on the adapter until `resume`, ten seconds at the longest.
  func hold(for holder: AnyObject, on adapter: String) {
    holders[ObjectIdentifier(holder)] = (adapter, Clock.monotonic() + Self.maxHoldDuration)
    setRelease()
    blueZ.tell()
    blueZChanged()
  }

  func resume(for holder: AnyObject) {
    guard holders.removeValue(forKey: ObjectIdentifier(holder)) != nil else { return }
    setRelease()
    blueZ.tell()
    blueZChanged()
  }

  /// Whether the search waits for a connection that is being made.
  func isHeld(_ adapter: String) -> Bool { holders.values.contains { $0.adapter == adapter } }

  private func setRelease() { release.set(holders.values.map(\.until).min()) }

  private func releaseHolders(_ now: Instant) {
    holders = holders.filter { $0.value.until > now }
    setRelease()
    blueZ.tell()
    blueZChanged()
  }

  func blueZChanged() { activities.keys.forEach(advance) }

  private func advance(_ path: String) {
    let adapter = blueZ.presence == .present ? blueZ.adapter(path: path) : nil
    let isWanted = searchers.values.contains(path) && !isHeld(path) && adapter?.isPowered == true
    switch activities[path] ?? .idle {
    case .busy: break
    case .idle where isWanted && !resting.contains(path): start(path)
    case .idle:
      if !searchers.values.contains(path) { forget(path) }
    case .active where adapter?.isPowered != true: activities[path] = .idle
    case .active(let confirmed):
      if !isWanted { return stop(path) }
      if adapter?.isDiscovering == true { activities[path] = .active(confirmed: true) } else if confirmed { restart(path) }
    }
  }

  private func start(_ path: String) {
    activities[path] = .busy
    let filter = BusValue.properties(["Transport": .string("le"), "DuplicateData": .bool(true)])
    blueZ.call(path, Adapter.interface, "SetDiscoveryFilter", [filter])
    blueZ.call(path, Adapter.interface, "StartDiscovery", milliseconds: 5000) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success:
        trouble[path] = nil
        waits[path] = nil
        activities[path] = .active(confirmed: false)
        let doubt = Timer { [weak self] _ in
          guard let self, case .active(confirmed: false) = activities[path], blueZ.adapter(path: path)?.isDiscovering == false else {
            return
          }
          restart(path)
        }
        doubt.set(Clock.monotonic() + Self.maxStartDuration)
        advance(path)
      case .failure(let error):
        trouble[path] = "cannot search: \(error.words)"
        // BlueZ may have begun all the same, or still search for us from before: it would refuse us for ever.
        if error.leavesDoubt { blueZ.call(path, Adapter.interface, "StopDiscovery") }
        restart(path)
        blueZ.tell()
      }
    }
  }

  private func stop(_ path: String) {
    activities[path] = .busy
    blueZ.call(path, Adapter.interface, "StopDiscovery") { [weak self] _ in
      self?.activities[path] = .idle
      self?.advance(path)
    }
  }

  /// The search ended without us: begin anew, ever later when that goes on.
  private func restart(_ path: String) {
    activities[path] = .idle
    let wait = min((waits[path] ?? .second / 2) * 2, Self.maxWait)
    waits[path] = wait
    resting.insert(path)
    let timer = Timer { [weak self] _ in
      guard let self, resting.remove(path) != nil else { return }
      advance(path)
    }
    timer.set(Clock.monotonic() + wait)
  }

  private func forget(_ path: String) {
    activities[path] = nil
    waits[path] = nil
    resting.remove(path)
    trouble[path] = nil
  }
}

extension BusError {
  /// Whether what was asked for may be so nevertheless.
  fileprivate var leavesDoubt: Bool {
    switch self {
    case .timeout, .refused("org.bluez.Error.InProgress", _): true
    default: false
    }
  }
}
