// A call on its way to an answer, and what a method needs to know of whoever made it.

import Protocols

/// A call that is being answered. Exactly one of `reply`, `fail` ends it; `continue` may come before, where the caller
/// takes more than one reply. To a oneway call nothing is sent.
@Loop final class Call: WatcherSink {
  let call: VarlinkCall
  /// nil once the call has ended.
  private var session: Session?
  /// Called when the client goes away before the end.
  var cancel: (@Loop () -> Void)?
  /// Called when a client that was slow has read what waited.
  var hasRoomAgain: (@Loop () -> Void)?
  /// When all of it had come: it may have waited for others of the same client.
  let arrived: Instant
  /// What it needed to be allowed.
  var right: Right?
  /// It goes on until one side ends it: nobody waits for its last reply.
  var lasts = false
  /// How it ends when the client can say nothing more, though it may still listen; nil: it goes on.
  var endsWithInput: ContractError?

  init(_ call: VarlinkCall, session: Session, arrived: Instant) {
    self.call = call
    self.session = session
    self.arrived = arrived
  }

  var peer: Peer? { session?.peer }
  /// Whether there is still somebody to answer.
  var isAlive: Bool { session != nil }
  /// Set-points under this lease came over the connection: it ends with it. False where it has ended.
  func bind(_ device: Device, _ token: String) -> Bool { session?.bind(device, token) ?? false }
  /// Whether the client was granted the right before.
  func has(_ right: Right) -> Bool { session?.has(right) ?? false }
  /// The call was granted, and the right with it for as long as the rules stay, where one is given.
  func grant(_ right: Right? = nil) { session?.grant(right) }
  /// Does the rest of answering in the client's turn.
  func goOn(_ rest: @escaping @Loop () -> Void) { session?.goOn(rest) }
  var hasRoom: Bool { session?.hasRoom ?? false }

  func reply(_ result: some VarlinkParameters) { end(call.oneway ? [] : VarlinkReply.message(result)) }
  func reply(encoded message: [UInt8]) { end(message) }
  func fail(_ error: ContractError) { end(call.oneway ? [] : VarlinkReply.message(error)) }

  /// One reply of several.
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

  /// The client is gone.
  func abandon() {
    session = nil
    cancel?()
    cancel = nil
    hasRoomAgain = nil
  }
}
