// Reads ahead on a thread of its own, so that reading recorded values and detecting periods in them share two processors.

import CLinux
import Glibc
import HistoryStore
import Synchronization

/// Chunks that are read on another thread, at most two of them ahead of the consumer, which must read to the end.
final class ReadAhead {
  /// A chunk, nil at the end, or the reason why there are no further ones.
  typealias Step = Result<MergedChunk?, HistoryError>

  /// What both threads use. The descriptors count the steps that are ready, and the free places for further ones; reading blocks until
  /// there is one.
  private final class Queue: Sendable {
    let steps = Mutex<[Step]>([])
    let ready = eventfd(0, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))
    let free = eventfd(2, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))

    deinit {
      close(ready)
      close(free)
    }

    func serve(_ read: () -> Step) {
      while true {
        Self.wait(free)
        let step = read()
        steps.withLock { $0.append(step) }
        Self.announce(ready)
        guard case .success(.some) = step else { return }
      }
    }

    static func wait(_ descriptor: CInt) {
      var count: UInt64 = 0
      while Glibc.read(descriptor, &count, 8) != 8, errno == EINTR {}
    }

    static func announce(_ descriptor: CInt) {
      var one: UInt64 = 1
      _ = write(descriptor, &one, 8)
    }
  }

  private final class Start {
    let queue: Queue
    let read: () -> Step
    init(_ queue: Queue, _ read: @escaping () -> Step) { (self.queue, self.read) = (queue, read) }
  }

  private let queue = Queue()

  /// `read` is only called on the other thread, until it returns nil or an error.
  init(_ read: @escaping @Sendable () -> Step) {
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        clinux_name_thread("read ahead")
        start.queue.serve(start.read)
        return nil
      }, Unmanaged.passRetained(Start(queue, read)).toOpaque())
    precondition(code == 0, "cannot start a thread: \(String(cString: strerror(code)))")
    pthread_detach(thread)
  }

  /// The next chunk, or nil at the end. Do not call this again after the end or an error.
  func next() throws(HistoryError) -> MergedChunk? {
    Queue.wait(queue.ready)
    let step = queue.steps.withLock { $0.removeFirst() }
    Queue.announce(queue.free)
    return try step.get()
  }
}
