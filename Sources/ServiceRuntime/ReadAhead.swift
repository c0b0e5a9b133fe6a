// Elements that a thread of its own produces a little ahead of their consumer, so that both work at the same time.

import CLinux
import Glibc

/// What a thread runs. A function for C cannot be generic.
private final class Job {
  let name: String
  let run: () -> Void
  init(_ name: String, _ run: @escaping () -> Void) { (self.name, self.run) = (name, run) }
}

/// A queue of a few elements between one producer and one consumer. Call `finish` before anything that the producer uses is released.
public final class ReadAhead<Element: Sendable>: @unchecked Sendable {
  private let capacity: Int
  private let produce: () -> Element?
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var thread = pthread_t()
  private var elements: [Element] = []
  private var hasEnded = false
  private var isCancelled = false

  /// Starts a thread with this name (at most 15 bytes), which calls `produce` until it returns nil, at most `capacity` elements ahead.
  public init(capacity: Int, name: String, produce: @escaping () -> Element?) {
    (self.capacity, self.produce) = (capacity, produce)
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(changed, nil)
    let job = Job(name) { [unowned self] in run() }
    let code = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let job = Unmanaged<Job>.fromOpaque(argument).takeRetainedValue()
        clinux_name_thread(job.name)
        job.run()
        return nil
      }, Unmanaged.passRetained(job).toOpaque())
    precondition(code == 0, "cannot start a thread: \(errnoMessage(code))")
  }

  private func run() {
    while let element = produce() {
      let continues = locked {
        elements.append(element)
        pthread_cond_signal(changed)
        while elements.count >= capacity, !isCancelled { pthread_cond_wait(changed, mutex) }
        return !isCancelled
      }
      if !continues { break }
    }
    locked {
      hasEnded = true
      pthread_cond_signal(changed)
    }
  }

  /// Waits for the next element; nil at the end.
  public func next() -> Element? {
    locked {
      while elements.isEmpty, !hasEnded { pthread_cond_wait(changed, mutex) }
      guard !elements.isEmpty else { return nil }
      pthread_cond_signal(changed)
      return elements.removeFirst()
    }
  }

  /// Ends the thread, and waits for it. Call it exactly once.
  public func finish() {
    locked {
      isCancelled = true
      pthread_cond_signal(changed)
    }
    pthread_join(thread, nil)
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(mutex)
    changed.deallocate()
    mutex.deallocate()
  }

  private func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }
}
