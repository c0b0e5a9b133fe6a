// One Watch call of a client. If the client reads too slowly or has requested a minimum interval, changes are merged instead of queued:
// the client gets the latest values once there is room and the interval has elapsed. A slow reader does not delay others.

import Protocols
import Varlink

/// The destination of a watcher's messages.
@Loop protocol WatcherSink: AnyObject {
  /// Whether there is room for more messages. If not, `Watcher.sendPending` is called once there is.
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
  private struct Pending {
    let state: DeviceState
    var indexes: Set<Int> = []
    var needsSnapshot = false
    var needsSchema = false
  }
  private var pending: [ObjectIdentifier: Pending] = [:]
  private var pendingEvents: [Contract.Event] = []
  /// Events for removed devices. Unlike other events, these must not be dropped.
  private var pendingRemovals: [String: Contract.Event] = [:]
  private lazy var timer = Timer { [weak self] _ in self?.sendPending() }
  private static let maxEvents = 64

  /// Creates a watcher. It sends pending messages at most once per `interval`, or at once if `interval` is 0. Heartbeats are not limited.
  init(sink: any WatcherSink, interval: Nanoseconds) {
    self.sink = sink
    self.interval = interval
  }

  /// Sends a snapshot of these devices.
  func notify(snapshot: [Contract.Device], of states: [DeviceState]) {
    guard canSend else {
      for state in states { pending[ObjectIdentifier(state), default: Pending(state: state)].needsSnapshot = true }
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, time: now, snapshot: snapshot))
  }

  /// Sends a new schema. Pending changes are discarded, because their positions refer to the old schema.
  func notify(schema: Contract.Schema, of state: DeviceState) {
    pending[ObjectIdentifier(state)]?.indexes = []
    guard canSend else {
      pending[ObjectIdentifier(state), default: Pending(state: state)].needsSchema = true
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, time: now, schemas: [schema]))
  }

  func notify(event: Contract.Event) {
    guard canSend else {
      if event.name == Contract.Event.removed {
        // The client knows the first of several devices with the same name.
        if pendingRemovals[event.device] == nil { pendingRemovals[event.device] = event }
      } else {
        if pendingEvents.count == Self.maxEvents { pendingEvents.removeFirst() }
        pendingEvents.append(event)
      }
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, time: now, events: [event]))
  }

  /// Sends changes of one device; `body` is the encoded list.
  func notify(changes body: [UInt8], _ indexes: [Int], of state: DeviceState) {
    guard canSend else {
      pending[ObjectIdentifier(state), default: Pending(state: state)].indexes.formUnion(indexes)
      return wait()
    }
    sendChanges(body)
  }

  /// Discards pending changes of a removed device.
  func discardPending(of state: DeviceState) { pending[ObjectIdentifier(state)] = nil }

  func sendHeartbeat() {
    // A heartbeat does not restart the interval.
    if sink?.hasRoom ?? false { write(VarlinkReply.message(Contract.Watch.Result(sequence: sequence, time: now), continues: true)) }
  }

  /// Sends the pending messages with current values, if there is room and the interval has elapsed. Removals come first, because a
  /// device of the same name may have been added since.
  func sendPending() {
    guard let sink, sink.hasRoom, !hasNothingPending else { return }
    guard Clock.monotonic() >= nextMessage else { return wait() }
    // Cleared before sending, because sending may make room, which calls this function again.
    let (devices, events) = (Array(pending.values), Array(pendingRemovals.values) + pendingEvents)
    pending = [:]
    pendingRemovals = [:]
    pendingEvents = []
    if !events.isEmpty { send(Contract.Watch.Result(sequence: sequence, time: now, events: events)) }
    let snapshots = devices.filter(\.needsSnapshot).map { $0.state.wireDevice(only: feed?.selection(of: $0.state)) }
    let schemas = devices.filter(\.needsSchema).map(\.state.wireSchema)
    if !snapshots.isEmpty || !schemas.isEmpty {
      send(
        Contract.Watch.Result(
          sequence: sequence, time: now, snapshot: snapshots.isEmpty ? nil : snapshots, schemas: schemas.isEmpty ? nil : schemas))
    }
    let boot = Clock.boot()
    for device in devices where !device.needsSnapshot && !device.indexes.isEmpty {
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

  /// The time of a reply, in µs since the Unix epoch.
  private var now: Int { Int(Clock.wall()) }

  private var hasNothingPending: Bool { pending.isEmpty && pendingEvents.isEmpty && pendingRemovals.isEmpty }

  private var canSend: Bool {
    guard let sink, sink.hasRoom, hasNothingPending else { return false }
    return interval == 0 || sequence == 0 || Clock.monotonic() >= nextMessage
  }

  /// Schedules `sendPending` for the end of the interval. Without an interval the sink calls it once there is room.
  private func wait() {
    if interval > 0 { timer.set(nextMessage) }
  }

  private func sendChanges(_ body: [UInt8]) {
    message.removeAll(keepingCapacity: true)
    ReadingWriter.watchReply(sequence: sequence, time: now, body: body, to: &message)
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
