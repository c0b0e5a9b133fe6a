// A thread for work that blocks: its results are delivered on the event loop. The thread starts with the first job.

import CLinux
import Glibc
import Protocols
import Synchronization

/// A thread that executes jobs in order. Create it on the loop's thread, and use it only there.
public final class BackgroundThread: EventSource {
  /// What both threads use: the queues and the descriptors that announce their entries.
  private final class Queues: Sendable {
    typealias Work = @Sendable () -> any Sendable
    let requests = Mutex<[(id: Int, work: Work)]>([])
    let results = Mutex<[(id: Int, value: any Sendable)]>([])
    /// Counts requests; reading blocks until there is one.
    let requested = eventfd(0, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))
    let finished = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    func serve() -> Never {
      while true {
        var count: UInt64 = 0
        guard read(requested, &count, 8) == 8 else { continue }
        let (id, work) = requests.withLock { $0.removeFirst() }
        let value = work()
        results.withLock { $0.append((id, value)) }
        Self.announce(finished)
      }
    }

    static func announce(_ descriptor: CInt) {
      var one: UInt64 = 1
      _ = write(descriptor, &one, 8)
    }
  }

  private let name: String
  private let queues = Queues()
  private var isStarted = false
  private var nextID = 0
  private var completions: [Int: (any Sendable) -> Void] = [:]

  /// A thread with this name (at most 15 bytes), for ps and debuggers. It ends with the process, by
  /// `endProcess`.
  public init(name: String, loop: EventLoop) {
    self.name = name
    super.init()
    loop.add(self)
  }

  /// Executes the work on the thread, then passes its result to `finish` on the loop.
  public func run<T: Sendable>(_ work: @escaping @Sendable () -> T, then finish: @escaping (T) -> Void) {
    nextID += 1
    completions[nextID] = { value in
      guard let value = value as? T else { preconditionFailure("the value is the result of another job") }
      finish(value)
    }
    queues.requests.withLock { $0.append((nextID, work)) }
    startIfNeeded()
    Queues.announce(queues.requested)
  }

  /// Blocks until all work is done. Returns false if this takes longer than `seconds`.
  public func wait(seconds: Int32) -> Bool {
    let done = eventfd(0, Int32(EFD_CLOEXEC))
    defer { close(done) }
    run {
      Queues.announce(done)
    } then: {
    }
    var polled = pollfd(fd: done, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, seconds * 1000) > 0
  }

  private func startIfNeeded() {
    guard !isStarted else { return }
    isStarted = true
    let start = Unmanaged.passRetained(Start(name, queues)).toOpaque()
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        clinux_name_thread(start.name)
        start.queues.serve()
      }, start)
    precondition(code == 0, "cannot start a thread: \(errnoMessage(code))")
    pthread_detach(thread)
  }

  private final class Start {
    let name: String
    let queues: Queues
    init(_ name: String, _ queues: Queues) { (self.name, self.queues) = (name, queues) }
  }

  public override var descriptor: Int32 { queues.finished }
  public override var interest: Int16 { Int16(POLLIN) }

  public override func ready(_ events: Int16, at now: Instant) {
    var count: UInt64 = 0
    _ = read(queues.finished, &count, 8)
    let results = queues.results.withLock { results in
      defer { results = [] }
      return results
    }
    for (id, value) in results { completions.removeValue(forKey: id)?(value) }
  }
}
