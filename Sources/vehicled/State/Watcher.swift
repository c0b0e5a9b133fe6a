// One Watch call of a client. If the client reads too slowly or has requested a minimum interval, changes are merged instead of queued:
// it gets the latest values once there is room. A slow reader does not delay others.

import Protocols
import Varlink

/// The destination of a watcher's messages.
@Loop protocol WatcherSink: AnyObject {
  /// Whether there is room for more messages. If not, `Watcher.drained` is called once there is.
  var hasRoom: Bool { get }
  /// Sends one message, including its NUL.
  func write(_ message: [UInt8])
}

@Loop final class Watcher {
  /// nil once the watch has ended.
  private var sink: (any WatcherSink)?
  private let interval: Nanoseconds
  private var sequence = 0
  private var message: [UInt8] = []
  private var nextMessage: Instant = 0
  /// The feed of this watcher, which selects the readings of a snapshot.
  weak var feed: Feed?
  /// The pending messages about a device. Holds positions instead of values, so that values and ages are current when sent.
  private struct Due {
    let state: DeviceState
    var indexes: Set<Int> = []
    var snapshot = false
    var schema = false
  }
  private var due: [ObjectIdentifier: Due] = [:]
  private var dueEvents: [Contract.Event] = []
  /// Removed devices. Unlike other events none of these may be dropped.
  private var dueRemovals: [String: Contract.Event] = [:]
  private lazy var timer = Timer { [weak self] _ in self?.drained() }
  private static let maxEvents = 64

  /// Creates a watcher that gets at most one message per `interval` (0: no limit).
  init(sink: any WatcherSink, interval: Nanoseconds) {
    self.sink = sink
    self.interval = interval
  }

  /// Sends a snapshot of these devices.
  func notify(snapshot: [Contract.Device], of states: [DeviceState]) {
    guard canSend else {
      for state in states { due[ObjectIdentifier(state), default: Due(state: state)].snapshot = true }
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, snapshot: snapshot))
  }

  /// Sends a new schema. Pending changes are discarded, because their positions refer to the old schema.
  func notify(schema: Contract.Schema, of state: DeviceState) {
    due[ObjectIdentifier(state)]?.indexes = []
    guard canSend else {
      due[ObjectIdentifier(state), default: Due(state: state)].schema = true
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, schemas: [schema]))
  }

  func notify(event: Contract.Event) {
    guard canSend else {
      if event.name == Contract.Event.removed {
        dueRemovals[event.device] = event
      } else {
        if dueEvents.count == Self.maxEvents { dueEvents.removeFirst() }
        dueEvents.append(event)
      }
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, events: [event]))
  }

  /// Sends changes of one device; `body` is the encoded list.
  func notify(changes body: [UInt8], _ indexes: [Int], of state: DeviceState) {
    guard canSend else {
      due[ObjectIdentifier(state), default: Due(state: state)].indexes.formUnion(indexes)
      return wait()
    }
    sendChanges(body)
  }

  /// Discards pending changes of a removed device.
  func forget(_ state: DeviceState) { due[ObjectIdentifier(state)] = nil }

  func sendHeartbeat() {
    // A heartbeat does not restart the interval.
    if sink?.hasRoom ?? false { write(VarlinkReply.message(Contract.Watch.Result(sequence: sequence), continues: true)) }
  }

  /// Sends the pending messages with current values, if there is room and the interval is over. Removals come first, because a
  /// device of the same name may have been added since.
  func drained() {
    guard let sink, sink.hasRoom, !hasNothingDue else { return }
    guard Clock.monotonic() >= nextMessage else { return wait() }
    // Cleared before sending, because sending may make room, which calls this function again.
    let (devices, events) = (Array(due.values), Array(dueRemovals.values) + dueEvents)
    due = [:]
    dueRemovals = [:]
    dueEvents = []
    if !events.isEmpty { send(Contract.Watch.Result(sequence: sequence, events: events)) }
    let shown = devices.filter(\.snapshot).map { $0.state.device(only: feed?.selection(of: $0.state)) }
    let schemas = devices.filter(\.schema).map(\.state.contractSchema)
    if !shown.isEmpty || !schemas.isEmpty {
      send(
        Contract.Watch.Result(sequence: sequence, snapshot: shown.isEmpty ? nil : shown, schemas: schemas.isEmpty ? nil : schemas))
    }
    let boot = Clock.boot()
    for device in devices where !device.snapshot && !device.indexes.isEmpty {
      var body: [UInt8] = []
      device.state.write("changes", device.indexes.sorted(), at: boot, to: &body)
      sendChanges(body)
    }
  }

  /// Ends the watch.
  func end() {
    timer.set(nil)
    sink = nil
  }

  private var hasNothingDue: Bool { due.isEmpty && dueEvents.isEmpty && dueRemovals.isEmpty }

  private var canSend: Bool {
    guard let sink, sink.hasRoom, hasNothingDue else { return false }
    return interval == 0 || sequence == 0 || Clock.monotonic() >= nextMessage
  }

  /// Schedules `drained` for the end of the interval. Without an interval the sink calls it once there is room.
  private func wait() {
    if interval > 0 { timer.set(nextMessage) }
  }

  private func sendChanges(_ body: [UInt8]) {
    message.removeAll(keepingCapacity: true)
    ReadingWriter.watchReply(sequence: sequence, body: body, to: &message)
    send(message)
  }

  private func send(_ result: Contract.Watch.Result) {
    send(VarlinkReply.message(result, continues: true))
  }

  private func send(_ message: [UInt8]) {
    if interval > 0 { nextMessage = Clock.monotonic() + interval }
    write(message)
  }

  private func write(_ message: [UInt8]) {
    sequence += 1
    sink?.write(message)
  }
}
