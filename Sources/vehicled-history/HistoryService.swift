// The service as a whole: creates its parts and connects them. Values pass from the daemon through WatchIntake to the recorder, the period
// trackers and the alerts.

import Glibc
import HistoryStore
import Logging
import Observations
import Protocols
import SQLite
import ServiceRuntime
import Trips
import Varlink

final class HistoryService {
  /// The paths of sockets and directories; the command line can override the configuration.
  struct Paths {
    var socket: String
    var daemon: String
    var directory: String
    /// The directory in which files for path units are created.
    var alerts: String
  }

  /// The longest time between two reads of the daemon's values, which are recorded with the times of their measurement.
  private static let pause: Nanoseconds = 1 * .second
  /// The time after which the declarations are read again after a failure.
  private static let describeDelay: Nanoseconds = 5 * .second

  private let loop: EventLoop
  private let paths: Paths
  private let configuration: HistoryConfiguration
  private let logger = Logger(label: "vehicled-history")
  private let store: StoreThread
  private let queue: BatchQueue
  private let recorder: Recorder
  private let periodManager: PeriodManager
  private let alerts: AlertManager
  private let maintenance: Maintenance
  private let server: HistoryServer
  private let access: ServiceAccess
  private let clock: ClockMonitor
  private var watch: DaemonWatch?
  private var intake = WatchIntake(at: .now)
  /// The reason why no values arrive, if any.
  private var failure: String? = "not connected yet"
  private var isOutageLogged = false

  /// Opens the store.
  init(_ configuration: HistoryConfiguration, _ paths: Paths, loop: EventLoop) throws {
    (self.configuration, self.paths, self.loop) = (configuration, paths, loop)
    let opened = try HistoryStore(directory: paths.directory)
    let clock = try ClockMonitor(opened, loop: loop)
    store = StoreThread(opened, loop: loop)
    let reads = ReaderThread(name: "reads", directory: paths.directory, loop: loop)
    let replays = ReaderThread(name: "replays", directory: paths.directory, loop: loop)
    let checks = ReaderThread(name: "checks", directory: paths.directory, loop: loop)
    queue = BatchQueue(store, boot: clock.boot, loop: loop)
    recorder = Recorder(queue, selection: configuration.selection, loop: loop)
    periodManager = PeriodManager(
      store: store, replays: replays, rules: configuration.rules, axis: LiveAxis(boot: clock.boot, offset: clock.offset.stored), loop: loop)
    alerts = AlertManager(configuration.alerts, directory: paths.alerts, state: "\(paths.directory)/alerts", loop: loop)
    maintenance = Maintenance(
      store: store, keep: configuration.keep, maxSize: configuration.maxSize, directory: paths.directory, loop: loop)
    access = ServiceAccess(observe: configuration.observe, control: configuration.control, section: "[history]", loop: loop)
    self.clock = clock
    server = HistoryServer(
      store: store, reads: reads, checks: checks, periodManager: periodManager, alerts: alerts, maintenance: maintenance, loop: loop,
      limit: configuration.maxSize)
    connectParts()
  }

  private func connectParts() {
    server.state = { [unowned self] in (queue.failure?.description ?? failure, queue.dropped + maintenance.dropped) }
    server.flush = { [unowned self] in recorder.flush() }
    server.recordAgain = { [unowned self] device, property in
      guard let kind = intake.kind(of: device) else { return }
      for observation in intake.current(of: device, at: clock.read().boot) where property == nil || observation.property == property {
        recorder.record(observation, kind: kind)
      }
    }
    periodManager.flush = { [unowned self] in recorder.flush() }
    periodManager.canStore = { [unowned self] in queue.failure == nil }
    periodManager.changed = { [unowned self] device, kind, hasEnded in
      alerts.periodChanged(of: device, kind, hasEnded: hasEnded)
      guard kind == .trip, hasEnded else { return }
      recorder.flush()
      maintenance.tripEnded()
    }
    maintenance.wall = { [unowned self] in clock.offset.isFinal ? SystemClock.boot / 1000 + clock.offset.stored : nil }
    maintenance.recut = { [unowned self] device, range, finish in
      periodManager.recut(device, in: range, progress: Progress()) { _ in finish() }
    }
    clock.changed = { [unowned self] offset, isFinal in
      store.run { [boot = clock.boot] (store) throws(StoreError) in
        try store.setOffset(offset, synchronised: isFinal, ofBoot: boot)
      } then: { [weak self] result in
        if case .failure(let error) = result { self?.logger.error("cannot store the clock offset of this boot: \(error)") }
        self?.periodManager.setOffset(offset)
      }
    }
  }

  /// Serves the socket, and records until the loop ends.
  func run() throws {
    try server.start(path: paths.socket, access: access)
    watch = DaemonWatch(socket: paths.daemon, pause: Self.pause, loop: loop) { [unowned self] event, _ in handle(event) }
    logger.notice("serving \(paths.socket), storing in \(paths.directory)")
    try loop.runAsService()
    stop()
  }

  private func stop() {
    logger.notice("stopping")
    watch?.close()
    server.close()
    interrupt()
    periodManager.saveOpen()
    queue.submitAll()
    if !store.wait(seconds: 10) { logger.error("disk does not respond: the latest values may be lost") }
  }

  // MARK: Values

  private func handle(_ event: DaemonWatch.Event) {
    switch event {
    case .result(let result):
      if failure != nil { connected() }
      let reading = clock.read()
      let (observations, removed) = intake.read(result, at: reading)
      recorder.daemonResponded(at: intake.lastSent)
      record(observations)
      alerts.observe(observations)
      for device in removed {
        recorder.remove(device)
        alerts.discardValues(of: device)
      }
    case .gap(let missing):
      logger.warning("vehicled skipped \(missing) replies: this service reads too slowly")
      recorder.interrupt()
    case .disconnected(let failure, _): disconnected(failure)
    }
  }

  private func record(_ observations: [Observation]) {
    for observation in observations {
      guard let kind = intake.kind(of: observation.device) else { continue }
      if recorder.record(observation, kind: kind) { periodManager.observe(observation) }
    }
  }

  /// Ends the recording until the next values, which follow a gap.
  private func interrupt() {
    record(intake.endUnconfirmed())
    recorder.interrupt()
  }

  private func connected() {
    failure = nil
    isOutageLogged = false
    logger.notice("connected to \(paths.daemon)")
    Notify.status("recording")
    describe()
  }

  /// Asks for the lifetimes of values, which the first snapshot does not contain.
  private func describe() {
    DaemonCall(socket: paths.daemon, Contract.Describe.self, .init(), loop: loop) { [weak self] result in
      guard let self, failure == nil else { return }
      switch result {
      case .success(let found): intake.describe(found.schemas)
      case .failure(let failure):
        logger.error("cannot read the declarations of the devices: \(failure.message)")
        OneShot(after: Self.describeDelay, loop: loop) { [weak self] in if self?.failure == nil { self?.describe() } }
      }
    }
  }

  private func disconnected(_ failure: DaemonFailure) {
    interrupt()
    intake.restart()
    alerts.discardValues()
    self.failure = failure.message
    guard !isOutageLogged else { return }
    isOutageLogged = true
    logger.notice("not recording: \(failure.message)")
    Notify.status("not recording: \(failure.message)")
  }
}

/// Reads the clock of this boot, and detects corrections of it.
final class ClockMonitor: EventSource {
  private static let interval: Nanoseconds = 10 * .second
  /// The maximum difference in µs that is due to reading the two clocks one after the other.
  private static let tolerance: Int64 = 1000

  /// The ID of this boot in the store.
  let boot: Int
  private(set) var offset: ClockOffset
  /// The offset for converting times of the daemon. Differences within the tolerance do not change it, so that equal times stay equal.
  private var current: Int64
  /// Called with a new offset to store.
  var changed: (_ offset: Int64, _ isFinal: Bool) -> Void = { _, _ in }

  init(_ store: HistoryStore, loop: EventLoop) throws {
    let reading = ClockReading.now
    offset = ClockOffset(reading)
    current = reading.offset
    boot = try store.boot(BootID.current(), offset: reading.offset)
    if let known = try store.reader.allBoots().first(where: { [boot] in $0.id == boot }) {
      offset.restore(known.offset, isFinal: known.isSynchronised)
    }
    super.init()
    if let new = offset.update(reading) { try store.setOffset(new.offset, synchronised: new.isFinal, ofBoot: boot) }
    wake = SystemClock.monotonic + Self.interval
    loop.add(self)
  }

  func read() -> ClockReading {
    let (boot, wall) = (SystemClock.boot / 1000, SystemClock.wall)
    if abs(wall - boot - current) > Self.tolerance { current = wall - boot }
    return ClockReading(boot: boot, wall: boot + current, isSynchronised: offset.isFinal)
  }

  override func timerFired(at now: Instant) {
    wake = offset.isFinal ? nil : now + Self.interval
    if let new = offset.update(.now) { changed(new.offset, new.isFinal) }
  }
}
