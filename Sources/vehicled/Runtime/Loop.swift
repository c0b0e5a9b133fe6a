// The event loop. Everything except set-up, tear-down and blocking work is isolated to this actor. The path of a value, from received bytes
// through the protocol state machine and the device state to the subscribers, is one synchronous call chain in one turn, without locks or
// thread hops.

import NIOCore
import NIOPosix

/// The daemon's event loop. It is never shut down: it ends with the process.
@globalActor actor Loop {
  static let shared = Loop()
  nonisolated static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  nonisolated static let eventLoop: any EventLoop = group.next()

  private nonisolated let executor: any SerialExecutor = Loop.eventLoop.executor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Runs `body` isolated to the loop, from a callback on the loop's thread; traps on other threads.
  nonisolated static func assumeIsolated<Value: Sendable>(_ body: @Loop () throws -> Value) rethrows -> Value {
    eventLoop.preconditionInEventLoop()
    return try withoutActuallyEscaping(body) { try unsafeBitCast($0, to: (() throws -> Value).self)() }
  }

  /// Runs `body` on the loop in a later turn, from any thread.
  nonisolated static func post(_ body: @escaping @Loop @Sendable () -> Void) {
    eventLoop.execute { assumeIsolated(body) }
  }
}

/// An executor that runs nonisolated tasks on the loop's thread as well: set-up, tear-down, signals.
final class LoopTasks: TaskExecutor {
  static let executor = LoopTasks()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Loop.eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
