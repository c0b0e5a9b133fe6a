// The latest log records, kept in memory for clients that cannot read the journal. Thread-safe.

import Logging
import ServiceRuntime
import Synchronization

final class LogRing: Sendable {
  /// The records of the daemon.
  static let shared = LogRing()

  typealias Record = Journal.Record
  typealias Observer = @Loop (Record) -> Void

  private struct State {
    var records: ArraySlice<Record> = []
    var size = 0
    var hasObservers = false
  }

  /// The maximum number of records, and of bytes that they use.
  static let (maxRecords, maxSize) = (500, 64 * 1024)
  private let state = Mutex(State())
  @Loop private var observers: [Int: Observer] = [:]
  @Loop private var nextID = 0

  var records: [Record] { state.withLock { Array($0.records) } }

  /// Adds a record, drops the oldest records beyond the limits, and passes the new one to the observers in a later turn of the loop.
  func append(_ record: Record) {
    let hasObservers = state.withLock { state in
      state.records.append(record)
      state.size += record.size
      while state.records.count > Self.maxRecords || state.size > Self.maxSize, let oldest = state.records.popFirst() {
        state.size -= oldest.size
      }
      return state.hasObservers
    }
    guard hasObservers else { return }
    Loop.post { for observer in self.observers.values { observer(record) } }
  }

  /// Passes new records to `observer` until `remove`.
  @Loop func observe(_ observer: @escaping Observer) -> Int {
    nextID += 1
    observers[nextID] = observer
    state.withLock { $0.hasObservers = true }
    return nextID
  }

  @Loop func remove(_ id: Int) {
    observers[id] = nil
    let hasObservers = !observers.isEmpty
    state.withLock { $0.hasObservers = hasObservers }
  }
}

extension Journal.Record {
  /// The approximate memory use in bytes.
  fileprivate var size: Int { 96 + message.utf8.count + details.reduce(0) { $0 + 64 + $1.key.utf8.count + $1.value.utf8.count } }
}
