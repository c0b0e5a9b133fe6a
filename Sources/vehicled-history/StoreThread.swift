// Runs the store on a thread of its own: tasks run in the order of submission, and a slow disk delays nothing else.

import CLinux
import Glibc
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
  func wait(seconds: Int32) -> Bool {
    let done = eventfd(0, Int32(EFD_CLOEXEC))
    thread.run {
      var one: UInt64 = 1
      _ = write(done, &one, 8)
    } then: {
    }
    var polled = pollfd(fd: done, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, seconds * 1000) > 0
  }
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
