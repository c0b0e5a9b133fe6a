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
  /// What changed and was not told yet.
  private var pending: [ObjectIdentifier: (state: DeviceState, indexes: Set<Int>)] = [:]
  private var pendingSnapshots: [String: Contract.Device] = [:]
  private var pendingSchemas: [String: Contract.Schema] = [:]
  private var pendingEvents: [Contract.Event] = []
  private lazy var timer = Timer { [weak self] _ in self?.drained() }
  private static let mostPendingEvents = 64

  /// A watcher that is told at most once per `interval` (0: as things happen).
  init(sink: any WatcherSink, interval: Nanoseconds) {
    self.sink = sink
    self.interval = interval
  }

  func tell(snapshot: [Contract.Device]) {
    guard mayTell else {
      for device in snapshot { pendingSnapshots[device.name] = device }
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, snapshot: snapshot))
  }

  /// The device's properties are others now: changes that were kept back by position mean nothing any more.
  func tell(schema: Contract.Schema, of state: DeviceState) {
    pending[ObjectIdentifier(state)] = nil
    guard mayTell else {
      pendingSchemas[schema.device] = schema
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, schemas: [schema]))
  }

  func tell(event: Contract.Event) {
    guard mayTell else {
      if pendingEvents.count == Self.mostPendingEvents { pendingEvents.removeFirst() }
      pendingEvents.append(event)
      return wait()
    }
    send(Contract.Watch.Result(sequence: sequence, events: [event]))
  }

  /// Changes of one device: `body` is the encoded list.
  func tell(changes body: [UInt8], _ indexes: [Int], of state: DeviceState) {
    guard mayTell else {
      pending[ObjectIdentifier(state), default: (state, [])].indexes.formUnion(indexes)
      return wait()
    }
    sendChanges(body)
  }

  /// The device is gone: what was kept back of it is told no more.
  func forget(_ state: DeviceState) {
    pending[ObjectIdentifier(state)] = nil
    pendingSnapshots[state.device.name] = nil
    pendingSchemas[state.device.name] = nil
  }

  func beat() {
    if sink?.hasRoom ?? false { send(Contract.Watch.Result(sequence: sequence)) }
  }

  /// There is room again, or the interval is over: tells what was kept back, in its latest form.
  func drained() {
    guard let sink, sink.hasRoom, !hasNothingPending, Clock.monotonic() >= nextMessage else { return }
    // Nothing is kept back while it is told: telling may make room, which calls this again.
    let (changes, snapshots, schemas, events) = (pending, pendingSnapshots, pendingSchemas, pendingEvents)
    pending = [:]
    pendingSnapshots = [:]
    pendingSchemas = [:]
    pendingEvents = []
    if !snapshots.isEmpty || !schemas.isEmpty || !events.isEmpty {
      send(
        Contract.Watch.Result(
          sequence: sequence, snapshot: snapshots.isEmpty ? nil : Array(snapshots.values),
          schemas: schemas.isEmpty ? nil : Array(schemas.values), events: events.isEmpty ? nil : events))
    }
    let boot = Clock.boot()
    for (state, indexes) in changes.values {
      var body: [UInt8] = []
      state.write("changes", indexes.sorted(), at: boot, to: &body)
      sendChanges(body)
    }
  }

  /// The client watches no more.
  func end() {
    timer.set(nil)
    sink = nil
  }

  private var hasNothingPending: Bool {
    pending.isEmpty && pendingSnapshots.isEmpty && pendingSchemas.isEmpty && pendingEvents.isEmpty
  }

  private var mayTell: Bool {
    guard let sink, sink.hasRoom, hasNothingPending else { return false }
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
    sequence += 1
    if interval > 0 { nextMessage = Clock.monotonic() + interval }
    sink?.write(message)
  }
}
