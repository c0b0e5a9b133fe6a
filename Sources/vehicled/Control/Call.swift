// A call in progress, and what a method needs to know about its caller.

import Protocols
import ServiceRuntime
import Varlink

/// A call in progress. Exactly one `reply` or `fail` ends it; before that, `continue` sends further replies if the caller accepts them
/// (`more`). Nothing is sent to the caller of a oneway call.
@Loop final class Call: WatcherSink {
  /// The method, its parameters and flags, as sent.
  let request: VarlinkCall
  /// nil once the call has ended.
  private var session: Session?
  /// Called when the client disconnects before the call has ended.
  var cancel: (@Loop () -> Void)?
  /// Cancels the pending decision about the caller's right; called when the client disconnects.
  var cancelDecision: (@Loop () -> Void)?
  /// Called when a slow client has read its pending output.
  var roomHandler: (@Loop () -> Void)?
  /// When the last byte of the call arrived. The call may have waited behind others of the same client since then.
  let arrived: Instant
  /// The right that the method requires.
  var right: Right?
  /// The rights that the caller has.
  var rights = Rights()
  /// The devices that the method has looked up so far; empty if the call concerns the daemon.
  var devices: Set<String> = []
  /// Adapts a stream to changed rights of the caller, and returns whether it may continue. If nil, the stream may continue if the new
  /// rights include `right` on all `devices`.
  var adaptToRights: (@Loop (Rights) -> Bool)?
  /// Whether the call is a stream that lasts until one side ends it.
  var isStream = false
  /// The error with which the call ends when the client shuts down its sending side; nil if the call continues.
  var inputEndError: ContractError?

  init(_ request: VarlinkCall, session: Session, arrived: Instant) {
    self.request = request
    self.session = session
    self.arrived = arrived
  }

  var peer: Peer? { session?.peer }
  /// Whether the client is still connected.
  var isAlive: Bool { session != nil }
  /// Binds the lease to this connection, over which its setpoints arrive. Returns false if the connection has ended.
  func bind(_ device: Device, _ token: String) -> Bool { session?.bind(device, token) ?? false }
  /// Sets `rights` if polkit has already granted the right on this connection. Returns false if it has not.
  func usePolkitGrant(of right: Right) -> Bool {
    guard let session, session.hasPolkitGrant(of: right) else { return false }
    rights = Rights(everywhere: right)
    return true
  }
  /// Records that the call was granted. If `cached` is true, later calls on this connection are granted too, until the access rules change.
  func grant(_ rights: Rights, cached: Bool = false) {
    self.rights = rights
    session?.grant(cached ? rights.everywhere : nil)
  }
  /// Replaces the caller's rights. Returns false, and keeps the old ones, if the call may not continue with them.
  func updateRights(_ rights: Rights) -> Bool {
    guard let right else { return true }
    let isGranted =
      adaptToRights.map { $0(rights) }
      ?? (devices.isEmpty ? rights.include(right, on: .daemon) : devices.allSatisfy { rights.include(right, on: .device($0)) })
    if isGranted { self.rights = rights }
    return isGranted
  }
  /// Runs `continuation`, the rest of the call, in the client's next turn.
  func resume(_ continuation: @escaping @Loop () -> Void) { session?.resume(continuation) }
  var hasRoom: Bool { session?.hasRoom ?? false }

  func reply(_ result: some VarlinkParameters) { end(request.oneway ? [] : VarlinkReply.message(result)) }
  func reply(encoded message: [UInt8]) { end(message) }
  func fail(_ error: ContractError) { end(request.oneway ? [] : VarlinkReply.message(error)) }

  /// Sends one reply of several.
  func `continue`(_ result: some VarlinkParameters) { write(VarlinkReply.message(result, continues: true)) }

  func write(_ message: [UInt8]) {
    if !request.oneway { session?.write(message) }
  }

  private func end(_ message: [UInt8]) {
    if !request.oneway { session?.write(message) }
    cancel = nil
    roomHandler = nil
    adaptToRights = nil
    let session = session
    self.session = nil
    session?.callEnded(self)
  }

  /// Ends the call because the client has disconnected.
  func abandon() {
    session = nil
    cancelDecision?()
    cancelDecision = nil
    cancel?()
    cancel = nil
    roomHandler = nil
    adaptToRights = nil
  }
}
