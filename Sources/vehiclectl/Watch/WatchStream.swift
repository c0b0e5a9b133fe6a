// Receives the replies of Watch across restarts of the daemon: if the connection is lost, opens another one and calls Watch again.

import Protocols
import Varlink

struct WatchStream {
  enum Update {
    case reply(Contract.Watch.Result)
    /// There is no connection: values are outdated until the next reply, which has a snapshot.
    case lost(Failure)
    /// Nothing has arrived.
    case nothing
  }

  /// The time between two attempts to connect, in seconds.
  private static let interval = 0.5

  /// Opens another connection.
  let connect: () throws(Failure) -> Client
  /// Seconds to wait for the first reply on a connection.
  let firstReply: Double
  /// The maximum time without a connection in seconds, or nil for no limit.
  let limit: Double?
  /// Seconds after which `each` is called even if nothing has arrived.
  let tick: Double

  /// Calls Watch on this connection. `each` returns whether to continue; it is also called when a descriptor of `watching` is readable.
  /// Throws if the daemon rejects the call, does not reply to the first call, or cannot be reached again within the limit.
  func run(
    _ client: Client, _ parameters: Contract.Watch.Parameters, watching descriptors: () -> [Int32] = { [] }, _ each: (Update) -> Bool
  ) throws {
    var open: Client? = client
    var (hasReplied, isOver) = (false, false)
    /// When the connection was lost, and how.
    var lost: (at: Double, how: Failure)?
    while true {
      do {
        let left = lost.flatMap { lost in limit.map { max(0, lost.at + $0 - Clock.monotonic) } } ?? .infinity
        try (open ?? connect()).stream(
          Contract.Watch.self, parameters, firstReply: min(firstReply, left), tick: tick, laterReplies: Client.watchTimeout,
          watching: descriptors
        ) { result in
          if result != nil { (hasReplied, lost) = (true, nil) }
          isOver = !each(result.map(Update.reply) ?? .nothing)
          return !isOver
        }
        if isOver { return }
        throw Failure.daemonGone("vehicled ended the watch")
      } catch let failure as Failure {
        guard hasReplied, failure.mayBeTemporary else { throw failure }
        let (since, how) = lost ?? (Clock.monotonic, failure)
        if let limit, Clock.monotonic >= since + limit { throw how }
        lost = (since, how)
        guard each(.lost(failure)) else { return }
      }
      open = nil
      let next = Clock.monotonic + Self.interval
      while Clock.monotonic < next {
        Client.wait(for: descriptors(), until: min(next, Clock.monotonic + tick))
        guard each(.nothing) else { return }
      }
    }
  }
}

extension Failure {
  /// Whether a call that has succeeded before may succeed again after a restart of the daemon. A device declares its properties again once
  /// it has detected its vehicle.
  fileprivate var mayBeTemporary: Bool {
    switch self {
    case .daemonGone, .notRunning, .tooManyClients, .timeout, .noAccess, .rejected(.noSuchProperty): true
    default: false
    }
  }

  /// The notice to show while there is no connection.
  var reconnecting: String {
    switch self {
    case .daemonGone, .notRunning: "no connection to the daemon; reconnecting"
    default: "reconnecting: \(message)"
    }
  }
}
