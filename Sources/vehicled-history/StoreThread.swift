// Runs the store on a thread of its own: tasks run in the order of submission, and a slow disk delays nothing else.

import HistoryStore
import Protocols
import SQLite
import ServiceRuntime

/// The writer of the store. The store is used only on this thread.
final class StoreThread {
  private struct Box: @unchecked Sendable { let store: HistoryStore }

  private let box: Box
  private let thread: BackgroundThread

  /// Takes ownership of the store.
  init(_ store: HistoryStore, loop: EventLoop) {
    box = Box(store: store)
    thread = BackgroundThread(name: "store", loop: loop)
  }

  /// Runs the work on the thread, then passes its result to `finish` on the loop.
  func run<T: Sendable>(
    _ work: @escaping @Sendable (HistoryStore) throws(StoreError) -> T,
    then finish: @escaping (Result<T, StoreError>) -> Void = { _ in }
  ) {
    thread.run { [box] in
      Result { () throws(StoreError) in try work(box.store) }
    } then: {
      finish($0)
    }
  }

  /// Blocks until all work is done. Returns false if this takes longer than `seconds`.
  func wait(seconds: Int32) -> Bool { thread.wait(seconds: seconds) }
}

/// A reader of the store on a thread of its own. The first task opens it.
final class ReaderThread {
  private final class Box: @unchecked Sendable { var reader: HistoryReader? }

  private let directory: String
  private let box = Box()
  private let thread: BackgroundThread

  init(name: String, directory: String, loop: EventLoop) {
    self.directory = directory
    thread = BackgroundThread(name: name, loop: loop)
  }

  /// Runs the work on the thread, then passes its result to `finish` on the loop.
  func run<T: Sendable>(
    _ work: @escaping @Sendable (HistoryReader) throws -> T, then finish: @escaping (Result<T, any Error>) -> Void
  ) {
    thread.run { [box, directory] in
      Result {
        let reader = try box.reader ?? HistoryReader(directory: directory)
        box.reader = reader
        return try work(reader)
      }
    } then: {
      finish($0)
    }
  }
}
