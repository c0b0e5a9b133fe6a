// The one loop. Everything in the daemon that is not set-up, tear-down or blocking runs on this thread, isolated to this
// actor: bytes → machine → state → subscribers is one synchronous call chain in one turn. Order is given, nothing is
// locked, nothing hops. The only unsafe cast of the daemon stands here.

import NIOCore
import NIOPosix

/// The daemon's single thread of events. Never shut down: the process ends with it.
@globalActor actor Loop {
  static let shared = Loop()
  nonisolated static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  nonisolated static let eventLoop: any EventLoop = group.next()

  private nonisolated let executor: any SerialExecutor = Loop.eventLoop.executor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Runs `body` as the loop, from a callback that is on the loop's thread already; traps elsewhere.
  nonisolated static func assumeIsolated<Value: Sendable>(_ body: @Loop () throws -> Value) rethrows -> Value {
    eventLoop.preconditionInEventLoop()
    return try withoutActuallyEscaping(body) { try unsafeBitCast($0, to: (() throws -> Value).self)() }
  }

  /// Runs `body` on the loop in a later turn, from any thread.
  nonisolated static func post(_ body: @escaping @Loop @Sendable () -> Void) {
    eventLoop.execute { assumeIsolated(body) }
  }
}

/// Runs tasks that belong to no actor on the loop as well: set-up, tear-down, signals.
final class LoopTasks: TaskExecutor {
  static let executor = LoopTasks()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Loop.eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
