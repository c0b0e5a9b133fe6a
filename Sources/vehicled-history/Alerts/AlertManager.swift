// Manages the configured alerts: reports raised ones to the journal and to clients, and creates a file for the path unit that starts a
// program.

import Glibc
import HistoryStore
import Logging
import Observations
import Protocols
import ServiceRuntime
import Varlink

final class AlertManager: EventSource {
  /// The MESSAGE_ID of the journal record for a raised alert.
  static let messageID = "3f5c1d8e0b7a4c62a9d4f1e6b2087c95"

  private struct Entry {
    let name: String
    let runsProgram: Bool
    var evaluator: AlertEvaluator
  }

  private let logger = Logger(label: "alerts")
  /// The directory in which files for path units are created.
  private let directory: String
  /// The file that stores the reported alerts, so that they are not reported again after a restart.
  private let stateFile: String
  private var entries: [Entry]
  private var reported: [String]
  private var streams: [Int: MethodCall<HistoryContract.AlertsMethod>] = [:]
  /// The names of the alerts whose changes a client that does not read has missed, by the number of its stream.
  private var behind: [Int: Set<String>] = [:]
  private var nextStream = 0

  init(_ alerts: [HistoryConfiguration.Alert], directory: String, state: String, loop: EventLoop) {
    (self.directory, stateFile) = (directory, state)
    let stored = (try? Files.read(state, limit: 1 << 16)).map {
      String(decoding: $0, as: UTF8.self).split(separator: "\n").map(String.init)
    }
    let now = SystemClock.boot / 1000
    // The stored line contains the condition: an alert with a changed condition counts as new.
    entries = alerts.map { alert in
      let isReported = stored?.contains("\(alert.name) \(alert.condition.text)") ?? false
      return Entry(
        name: alert.name, runsProgram: alert.runsProgram, evaluator: AlertEvaluator(alert.condition, isReported: isReported, at: now))
    }
    reported = stored ?? []
    super.init()
    loop.add(self)
    if entries.contains(where: { !$0.evaluator.condition.usesValues }) { wake = SystemClock.monotonic }
  }

  /// Handles the observations of one reply.
  func observe(_ observations: [Observation]) {
    guard !entries.isEmpty else { return }
    let now = SystemClock.boot / 1000
    var touched: Set<Int> = []
    for observation in observations {
      for index in entries.indices where entries[index].evaluator.uses(observation.device, observation.property) {
        entries[index].evaluator.observe(observation, at: now)
        touched.insert(index)
      }
    }
    update(touched, at: now)
  }

  /// Handles the start or the end of a period.
  func periodChanged(of device: String, _ kind: DetectedPeriod.Kind, hasEnded: Bool) {
    let now = SystemClock.boot / 1000
    for index in entries.indices { entries[index].evaluator.periodChanged(of: device, kind, hasEnded: hasEnded, at: now) }
    update(Set(entries.indices), at: now)
  }

  /// Discards the values of a device or, without a device, all values.
  func discardValues(of device: String? = nil) {
    for index in entries.indices { entries[index].evaluator.discardValues(of: device) }
    update(Set(entries.indices), at: SystemClock.boot / 1000)
  }

  override func timerFired(at now: Instant) { update(Set(entries.indices), at: SystemClock.boot / 1000) }

  private func update(_ indexes: Set<Int>, at now: Int64) {
    var changed: [HistoryContract.Alert] = []
    for index in indexes.sorted() {
      let (hasChanged, isRaised) = entries[index].evaluator.update(at: now)
      if isRaised { report(entries[index]) }
      if hasChanged { changed.append(alert(entries[index], at: now)) }
    }
    let due = entries.compactMap(\.evaluator.due).min()
    wake = due.map { SystemClock.monotonic + max(1000, $0 - now) * .microsecond }
    storeReported()
    guard !changed.isEmpty else { return }
    for (number, stream) in streams { send(changed, to: stream, number) }
  }

  private func report(_ entry: Entry) {
    logger.warning(
      "alert \(entry.name): \(entry.evaluator.text)", metadata: ["alert": "\(entry.name)", Journal.messageID: "\(Self.messageID)"])
    guard entry.runsProgram else { return }
    let text = Array((alert(entry, at: SystemClock.boot / 1000).json + "\n").utf8)
    do throws(ValueError) {
      // Write in place: closing the file triggers the path unit.
      try Files.write("\(directory)/\(entry.name)", text, flags: O_CREAT | O_TRUNC)
    } catch {
      logger.error("cannot start the program of alert \(entry.name): \(error); check RuntimeDirectory= of the unit")
    }
  }

  private func storeReported() {
    let names = entries.filter(\.evaluator.isReported).map { "\($0.name) \($0.evaluator.condition.text)" }
    guard names != reported else { return }
    reported = names
    do throws(ValueError) {
      try Files.replace(stateFile, with: Array(names.map { $0 + "\n" }.joined().utf8))
    } catch {
      logger.warning("cannot store the reported alerts, which may be reported again after a restart: \(error)")
    }
  }

  private func alert(_ entry: Entry, at now: Int64) -> HistoryContract.Alert {
    let since = SystemClock.wall - (now - entry.evaluator.since)
    return HistoryContract.Alert(
      name: entry.name, condition: entry.evaluator.condition.text, state: entry.evaluator.state.rawValue, since: Int(since),
      text: entry.evaluator.text)
  }

  // MARK: Clients

  /// Returns all alerts, and streams changes to a client that accepts more replies.
  func answer(_ call: MethodCall<HistoryContract.AlertsMethod>) {
    let now = SystemClock.boot / 1000
    let all = HistoryContract.AlertsMethod.Result(alerts: entries.map { alert($0, at: now) })
    guard call.acceptsMore else { return call.reply(all) }
    nextStream += 1
    let number = nextStream
    streams[number] = call
    call.onCancel { [weak self] in
      self?.streams[number] = nil
      self?.behind[number] = nil
    }
    call.onRoom { [weak self] in self?.catchUp(number) }
    call.send(all)
  }

  private func send(_ changed: [HistoryContract.Alert], to stream: MethodCall<HistoryContract.AlertsMethod>, _ number: Int) {
    if stream.hasRoom { stream.send(.init(alerts: changed)) } else { behind[number, default: []].formUnion(changed.map(\.name)) }
  }

  /// Sends the current state of the alerts that changed while a client did not read.
  private func catchUp(_ number: Int) {
    guard let stream = streams[number], let names = behind.removeValue(forKey: number) else { return }
    let now = SystemClock.boot / 1000
    send(entries.filter { names.contains($0.name) }.map { alert($0, at: now) }, to: stream, number)
  }
}

extension AlertCondition {
  /// Whether the condition depends on values, and is unknown without them.
  var usesValues: Bool {
    alternatives.joined().contains { if case .period = $0 { false } else { true } }
  }
}

extension HistoryServer {
  var alertMethods: [ServerMethod] {
    [ServerMethod(HistoryContract.AlertsMethod.self, right: .observe) { [unowned self] in alerts.answer($0) }]
  }
}
