// The session of one browser: its rights, and the WebSockets that end with it.

import Protocols

/// What the pages of a session may do besides observing.
struct Rights: Equatable, Sendable {
  /// The devices whose properties may be set, and whose actions may be called.
  var control: Set<String> = []
  /// Whether the browser is a kiosk's, which shows large gauges.
  var isKiosk = false
}

final class Session {
  /// The maximum number of WebSockets. A page uses two, and one for each stream.
  static let maxConnections = 24
  /// How long a session lasts, in seconds.
  static let lifetime: Int64 = 30 * 86_400

  let rights: Rights
  /// The devices that the token of a restored session may control, for which the browser must sign in again.
  let withheld: Set<String>
  let expiry: Instant
  /// Of the calls of all its pages. A slider sends 20 calls per second.
  private var calls: RateLimit
  private var connections: [ObjectIdentifier: (String) -> Void] = [:]

  init(_ rights: Rights, at now: Instant) {
    (self.rights, withheld, expiry) = (rights, [], now + Self.lifetime * .second)
    calls = RateLimit(burst: 100, perSecond: 50, at: now)
  }

  /// A session that was stored before a restart. It only observes: while the server was stopped, any local user could listen on its port
  /// and receive the cookies of pages that connected again.
  init(restored rights: Rights, expiry: Instant, at now: Instant) {
    (self.rights, withheld, self.expiry) = (Rights(isKiosk: rights.isKiosk), rights.control, expiry)
    calls = RateLimit(burst: 100, perSecond: 50, at: now)
  }

  func isExpired(at now: Instant) -> Bool { now >= expiry }

  /// Counts a call. Returns nil if it may be made now, or else the time to wait.
  func takeCall(at now: Instant) -> Nanoseconds? { calls.take(at: now) }

  // MARK: WebSockets

  var isConnected: Bool { !connections.isEmpty }
  var canConnect: Bool { connections.count < Self.maxConnections }

  /// `close` closes the connection for a reason.
  func add(_ connection: AnyObject, close: @escaping (String) -> Void) { connections[ObjectIdentifier(connection)] = close }
  func remove(_ connection: AnyObject) { connections.removeValue(forKey: ObjectIdentifier(connection)) }

  /// Closes all its WebSockets.
  func end(_ reason: String) { for close in connections.values { close(reason) } }
}
