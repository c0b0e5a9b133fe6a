// A thread for blocking work. There are at most six: one for the disk, one for long reads, two for names of users and groups, one for host
// names, and one that requests CAN sockets.

import NIOPosix
import Protocols

final class Worker: Sendable {
  private let pool = NIOThreadPool(numberOfThreads: 1)

  /// Starts the thread. It is never stopped: it ends with the process.
  init() { pool.start() }

  /// Runs blocking work on the thread, in order; `finish` gets its result on the loop.
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
