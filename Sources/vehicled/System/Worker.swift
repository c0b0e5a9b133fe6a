// A thread for work that blocks: the disk's, that for long reads, and that for names of users and groups.

import NIOPosix
import Protocols

final class Worker: Sendable {
  private let pool = NIOThreadPool(numberOfThreads: 1)

  /// Starts the thread. It is never stopped: the process ends with it.
  init() { pool.start() }

  /// Runs blocking work on the thread, in order, and hands its result back on the loop.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable () throws(ValueError) -> Value,
    then finish: @escaping @Loop @Sendable (Result<Value, ValueError>) -> Void
  ) {
    pool.submit { _ in
      let result = Result { () throws(ValueError) in try work() }
      Loop.post { finish(result) }
    }
  }
}
