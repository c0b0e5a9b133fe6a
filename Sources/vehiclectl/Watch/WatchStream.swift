// Receives the replies of a call across restarts of the daemon: if the connection is lost, opens another one and makes the call again.

import Protocols
import Varlink

struct WatchStream<Method: VarlinkMethod> {
  enum Update {
    case reply(Method.Result)
    /// There is no connection: values are outdated until the next reply, which has a snapshot.
    case lost(Failure)
    /// Nothing has arrived.
    case nothing
  }

  /// The time between two attempts to connect, in seconds.
  private static var interval: Double { 0.5 }

  /// Opens another connection.
  let connect: () throws(Failure) -> Client
  /// Seconds to wait for the first reply on a connection.
  let firstReply: Double
  /// The maximum time without a connection in seconds, or nil for no limit.
  let limit: Double?
  /// Seconds after which `each` is called even if nothing has arrived.
  let tick: Double
  /// Seconds to wait for each later reply; nil if replies can stay away.
  let laterReplies: Double?

  /// Makes the call on this connection. `each` returns whether to continue; it is also called when a descriptor of `watching` is readable.
  /// Throws if the daemon rejects the call, does not reply to the first call, or cannot be reached again within the limit.
  func run(
    _ client: Client, _ parameters: Method.Parameters, watching descriptors: () -> [Int32] = { [] }, _ each: (Update) -> Bool
  ) throws {
    var open: Client? = client
    var (hasReplied, isOver) = (false, false)
    /// When the connection was lost, and how.
    var lost: (at: Double, how: Failure)?
    while true {
      do {
        let left = lost.flatMap { lost in limit.map { max(0, lost.at + $0 - Clock.monotonic) } } ?? .infinity
        try (open ?? connect()).stream(
          Method.self, parameters, firstReply: min(firstReply, left), tick: tick, laterReplies: laterReplies,
          watching: descriptors
        ) { result in
          if result != nil { (hasReplied, lost) = (true, nil) }
          isOver = !each(result.map(Update.reply) ?? .nothing)
          return !isOver
        }
        if isOver { return }
        throw Failure.daemonGone("vehicled ended the call")
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
    case .daemonGone, .notRunning, .closedWithoutReply, .timeout, .noAccess, .rejected(.noSuchProperty): true
    // The daemon ends a recording that is read too slowly, and those of a device that is reconfigured.
    case .rejected(.deviceError(_, ErrorCode.tooSlow.rawValue, _)), .rejected(.deviceError(_, ErrorCode.removed.rawValue, _)): true
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
