// A call in progress, and what a method needs to know about its caller.

import Protocols

/// A call in progress. Exactly one `reply` or `fail` ends it; `continue` may come before if the caller accepts more than one
/// reply. Nothing is sent to the caller of a oneway call.
@Loop final class Call: WatcherSink {
  let call: VarlinkCall
  /// nil once the call has ended.
  private var session: Session?
  /// Called when the client disconnects before the end.
  var cancel: (@Loop () -> Void)?
  /// Called when a slow client has read its pending output.
  var hasRoomAgain: (@Loop () -> Void)?
  /// When the call was complete. It may have waited behind others of the same client.
  let arrived: Instant
  /// The right that the method requires.
  var right: Right?
  /// Whether it is a stream that lasts until one side ends it.
  var isStream = false
  /// The error that ends it when the client shuts down its sending side; nil: it continues.
  var endsWithInput: ContractError?

  init(_ call: VarlinkCall, session: Session, arrived: Instant) {
    self.call = call
    self.session = session
    self.arrived = arrived
  }

  var peer: Peer? { session?.peer }
  /// Whether the client is still connected.
  var isAlive: Bool { session != nil }
  /// Ties the lease to this connection, over which its set-points come. False if the connection has ended.
  func bind(_ device: Device, _ token: String) -> Bool { session?.bind(device, token) ?? false }
  /// Whether the client already has the right.
  func has(_ right: Right) -> Bool { session?.has(right) ?? false }
  /// Records that the call was granted. A right that is given is cached until the access rules change.
  func grant(_ right: Right? = nil) { session?.grant(right) }
  /// Continues to answer in the client's next turn.
  func resume(_ rest: @escaping @Loop () -> Void) { session?.resume(rest) }
  var hasRoom: Bool { session?.hasRoom ?? false }

  func reply(_ result: some VarlinkParameters) { end(call.oneway ? [] : VarlinkReply.message(result)) }
  func reply(encoded message: [UInt8]) { end(message) }
  func fail(_ error: ContractError) { end(call.oneway ? [] : VarlinkReply.message(error)) }

  /// Sends one reply of several.
  func `continue`(_ result: some VarlinkParameters) { write(VarlinkReply.message(result, continues: true)) }

  func write(_ message: [UInt8]) {
    if !call.oneway { session?.write(message) }
  }

  private func end(_ message: [UInt8]) {
    if !call.oneway { session?.write(message) }
    cancel = nil
    hasRoomAgain = nil
    let session = session
    self.session = nil
    session?.finished(self)
  }

  /// Ends the call because the client has disconnected.
  func abandon() {
    session = nil
    cancel?()
    cancel = nil
    hasRoomAgain = nil
  }
}
