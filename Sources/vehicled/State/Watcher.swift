// One client that watches. When it does not read fast enough, or asked for fewer messages, changes are not queued but
// merged: it gets the latest values when there is room. A slow reader never delays another.

import Protocols

/// Where a watcher's messages go.
@Loop protocol WatcherSink: AnyObject {
  /// There is room for more; when not, `Watcher.drained` is called once there is.
  var hasRoom: Bool { get }
  /// Takes one message, NUL included.
  func write(_ message: [UInt8])
}

@Loop final class Watcher {
  /// nil once the watch has ended.
  private var sink: (any WatcherSink)?
  private let interval: Nanoseconds
  private var sequence = 0
  private var message: [UInt8] = []
  private var nextMessage: Instant = 0
  /// Whose references these are; it says which readings belong into a snapshot.
  weak var feed: Feed?
  /// What is to be told of a device: only that it is, so that values are told as they are then, with their ages.
  private struct Due {
    let state: DeviceState
    var indexes: Set<Int> = []
    var snapshot = false
    var schema = false
  }
  private var due: [ObjectIdentifier: Due] = [:]
  private var dueEvents: [Contract.Event] = []
  /// Devices that are gone: none of them may be forgotten.
  private var dueRemovals: [String: Contract.Event] = [:]
  private lazy var timer = Timer { [weak self] _ in self?.drained() }
  private static let maxEvents = 64

  /// A watcher that is told at most once per `interval` (0: as things happen).
  init(sink: any WatcherSink, interval: Nanoseconds) {
    self.sink = sink
    self.interval = interval
  }

  /// The devices as a snapshot shows them now, and their states.
  func tell(snapshot: [Contract.Device], of states: [DeviceState]) {
    guard mayTell else {
      for state in states { due[ObjectIdentifier(state), default: Due(state: state)].snapshot = true }
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, snapshot: snapshot))
  }

  /// The device's properties are others now: changes that were kept back by position mean nothing any more.
  func tell(schema: Contract.Schema, of state: DeviceState) {
    due[ObjectIdentifier(state)]?.indexes = []
    guard mayTell else {
      due[ObjectIdentifier(state), default: Due(state: state)].schema = true
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, schemas: [schema]))
  }

  func tell(event: Contract.Event) {
    guard mayTell else {
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

  /// Changes of one device: `body` is the encoded list.
  func tell(changes body: [UInt8], _ indexes: [Int], of state: DeviceState) {
    guard mayTell else {
      due[ObjectIdentifier(state), default: Due(state: state)].indexes.formUnion(indexes)
      return wait()
    }
    sendChanges(body)
  }

  /// The device is gone: what was kept back of it is told no more.
  func forget(_ state: DeviceState) { due[ObjectIdentifier(state)] = nil }

  func beat() {
    // It is no news: the interval goes on.
    if sink?.hasRoom ?? false { write(VarlinkReply.message(Contract.Watch.Result(sequence: sequence), continues: true)) }
  }

  /// There is room again, or the interval is over: tells what was kept back, in its latest form. What is gone comes first,
  /// for a device of the same name may have come since.
  func drained() {
    guard let sink, sink.hasRoom, !hasNothingDue else { return }
    guard Clock.monotonic() >= nextMessage else { return wait() }
    // Nothing is kept back while it is told: telling may make room, which calls this again.
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

  /// The client watches no more.
  func end() {
    timer.set(nil)
    sink = nil
  }

  private var hasNothingDue: Bool { due.isEmpty && dueEvents.isEmpty && dueRemovals.isEmpty }

  private var mayTell: Bool {
    guard let sink, sink.hasRoom, hasNothingDue else { return false }
    return interval == 0 || sequence == 0 || Clock.monotonic() >= nextMessage
  }

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
