// The BLE scan of each adapter, shared by all links and clients that need one. The scan pauses while a connection is being made, because
// many Bluetooth controllers cannot do both. It restarts when the adapter comes back. BlueZ ends the scan when the daemon's bus connection
// ends. While BlueZ monitors advertisements, the scan for links that are searching for their peer runs only periodically, because an
// active scan takes radio time from the connections.

import DBus
import Protocols

@Loop final class BLEScanner: BlueZObserver {
  private enum Activity {
    case idle
    /// A call to BlueZ is in progress.
    case busy
    /// `confirmed`: BlueZ has reported that it is scanning.
    case active(confirmed: Bool)
  }

  private struct Client {
    let adapter: String
    let since: Instant
    let isSearch: Bool
  }

  private unowned let blueZ: BlueZ
  private var clients: [ObjectIdentifier: Client] = [:]
  /// The links that are connecting, with the adapter and the end of the pause.
  private var pauses: [ObjectIdentifier: (adapter: String, until: Instant)] = [:]
  private var activities: [String: Activity] = [:]
  /// The last delay before a restart, by the adapter's path.
  private var delays: [String: Nanoseconds] = [:]
  /// Adapters whose scan restarts after a delay.
  private var backingOff: Set<String> = []
  /// Why a scan cannot run, by the adapter's path.
  private(set) var failures: [String: String] = [:]
  private lazy var resumeTimer = Timer { [weak self] in self?.endPauses($0) }
  private lazy var scheduleTimer = Timer { [weak self] _ in self?.blueZChanged() }

  private static let maxDelay: Nanoseconds = 16 * .second
  /// If BlueZ does not report within this time after StartDiscovery that it is scanning, the scan is restarted.
  private static let maxStartDuration: Nanoseconds = 5 * .second
  /// The maximum pause: longer than it takes to connect to an advertising peer, but an absent peer does not block the scan for long.
  private static let maxPauseDuration: Nanoseconds = 10 * .second

  init(_ blueZ: BlueZ) { self.blueZ = blueZ }

  /// Scans on the adapter with this path until `end`. For a search, the scan follows `SearchSchedule` while BlueZ monitors advertisements.
  func begin(for client: AnyObject, on adapter: String, isSearch: Bool = false) {
    if clients.isEmpty { blueZ.add(self) }
    clients[ObjectIdentifier(client)] = Client(adapter: adapter, since: Clock.monotonic(), isSearch: isSearch)
    activities[adapter] = activities[adapter] ?? .idle
    advance(adapter)
  }

  func end(for client: AnyObject) {
    guard let adapter = clients.removeValue(forKey: ObjectIdentifier(client))?.adapter else { return }
    advance(adapter)
    if clients.isEmpty, activities.isEmpty { blueZ.remove(self) }
  }

  /// Pauses the scan on the adapter until `resume`, for at most 10 s.
  func pause(for link: AnyObject, on adapter: String) {
    pauses[ObjectIdentifier(link)] = (adapter, Clock.monotonic() + Self.maxPauseDuration)
    setResumeTimer()
    blueZ.notify()
    blueZChanged()
  }

  func resume(for link: AnyObject) {
    guard pauses.removeValue(forKey: ObjectIdentifier(link)) != nil else { return }
    setResumeTimer()
    blueZ.notify()
    blueZChanged()
  }

  /// Whether the scan is paused because a connection is being made.
  func isPaused(_ adapter: String) -> Bool { pauses.values.contains { $0.adapter == adapter } }

  private func setResumeTimer() { resumeTimer.set(pauses.values.map(\.until).min()) }

  private func endPauses(_ now: Instant) {
    pauses = pauses.filter { $0.value.until > now }
    setResumeTimer()
    blueZ.notify()
    blueZChanged()
  }

  func blueZChanged() { activities.keys.forEach(advance) }

  /// Whether a client needs a scan now. Sets the timer for the next change.
  private func isNeeded(_ path: String) -> Bool {
    let now = Clock.monotonic()
    let searches = clients.values.filter { $0.isSearch && blueZ.monitor.isActive($0.adapter) }
    scheduleTimer.set(searches.map { SearchSchedule.nextChange(since: $0.since, now: now) }.min())
    return clients.values.contains {
      $0.adapter == path && (!$0.isSearch || !blueZ.monitor.isActive(path) || SearchSchedule.scans(since: $0.since, now: now))
    }
  }

  private func advance(_ path: String) {
    let adapter = blueZ.presence == .present ? blueZ.adapter(path: path) : nil
    let isWanted = isNeeded(path) && !isPaused(path) && adapter?.isPowered == true
    switch activities[path] ?? .idle {
    case .busy: break
    case .idle where isWanted && !backingOff.contains(path): start(path)
    case .idle:
      if !clients.values.contains(where: { $0.adapter == path }) { forget(path) }
    case .active where adapter?.isPowered != true: activities[path] = .idle
    case .active(let confirmed):
      if !isWanted { return stop(path) }
      if adapter?.isDiscovering == true { activities[path] = .active(confirmed: true) } else if confirmed { restart(path) }
    }
  }

  private func start(_ path: String) {
    activities[path] = .busy
    let filter = DBusValue.properties(["Transport": .string("le"), "DuplicateData": .bool(true)])
    blueZ.call(path, Adapter.interface, "SetDiscoveryFilter", [filter])
    blueZ.call(path, Adapter.interface, "StartDiscovery", milliseconds: 5000) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success:
        failures[path] = nil
        delays[path] = nil
        activities[path] = .active(confirmed: false)
        let confirmation = Timer { [weak self] _ in
          guard let self, case .active(confirmed: false) = activities[path], blueZ.adapter(path: path)?.isDiscovering == false else {
            return
          }
          restart(path)
        }
        confirmation.set(Clock.monotonic() + Self.maxStartDuration)
        advance(path)
      case .failure(let error):
        failures[path] = "cannot scan: \(error.message)"
        // BlueZ may have started the scan in spite of the error, and would then reject every further StartDiscovery.
        if error.isAmbiguous { blueZ.call(path, Adapter.interface, "StopDiscovery") }
        restart(path)
        blueZ.notify()
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

  /// Restarts a scan that ended unexpectedly, with exponential backoff.
  private func restart(_ path: String) {
    activities[path] = .idle
    let delay = min((delays[path] ?? .second / 2) * 2, Self.maxDelay)
    delays[path] = delay
    backingOff.insert(path)
    let timer = Timer { [weak self] _ in
      guard let self, backingOff.remove(path) != nil else { return }
      advance(path)
    }
    timer.set(Clock.monotonic() + delay)
  }

  private func forget(_ path: String) {
    activities[path] = nil
    delays[path] = nil
    backingOff.remove(path)
    failures[path] = nil
  }
}

extension DBusError {
  /// Whether the call may have succeeded in spite of the error.
  fileprivate var isAmbiguous: Bool {
    switch self {
    case .timeout, .refused("org.bluez.Error.InProgress", _): true
    default: false
    }
  }
}

/// When a search scans actively in addition to the advertisement monitor. The monitor misses names that are sent only in scan responses,
/// and advertisements without flags.
enum SearchSchedule {
  static let first: Nanoseconds = 15 * .second
  static let period: Nanoseconds = 60 * .second
  static let length: Nanoseconds = 5 * .second

  /// Whether a search that began at `since` scans now: in its first 15 s, then for 5 s per minute, all searches at the same time.
  static func scans(since: Instant, now: Instant) -> Bool { now - since < first || now % period < length }

  /// The next time at which `scans` may change.
  static func nextChange(since: Instant, now: Instant) -> Instant {
    if now - since < first { return since + first }
    let phase = now % period
    return now - phase + (phase < length ? length : period)
  }
}
