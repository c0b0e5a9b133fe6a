// A call that a server has received: what a method needs to know about it, and its replies.

import Protocols
import Varlink

/// A call in progress. Exactly one `reply` or `fail` ends it. Nothing is sent to the client of a oneway call.
public final class ServerCall {
  let request: VarlinkCall
  public let peer: Peer
  /// nil once the call has ended.
  private var session: ServerSession?
  fileprivate var cancelHandler: (() -> Void)?
  fileprivate var roomHandler: (() -> Void)?

  init(_ request: VarlinkCall, session: ServerSession) {
    (self.request, self.session, peer) = (request, session, session.peer)
  }

  var hasEnded: Bool { session == nil }
  fileprivate var hasRoom: Bool { session?.hasRoom ?? false }

  func fail(_ error: some VarlinkError) { end(VarlinkReply.message(error: error)) }

  fileprivate func end(_ message: [UInt8]) {
    guard let session else { return }
    self.session = nil
    (cancelHandler, roomHandler) = (nil, nil)
    if !request.oneway { session.write(message) }
    session.callEnded(self)
  }

  fileprivate func write(_ message: [UInt8]) { session?.write(message) }

  /// Ends a call whose client has disconnected.
  func abandon() {
    session = nil
    let handler = cancelHandler
    (cancelHandler, roomHandler) = (nil, nil)
    handler?()
  }

  /// Reports that the client has read the pending output.
  func reportRoom() { roomHandler?() }
}

/// A call of one method. A method may end the call later, from any event of the loop.
public struct MethodCall<M: VarlinkMethod> {
  public let parameters: M.Parameters
  let call: ServerCall

  public var peer: Peer { call.peer }
  /// Whether the client accepts more than one reply.
  public var acceptsMore: Bool { call.request.more }
  /// Whether the call has ended, by a reply or because the client has disconnected.
  public var hasEnded: Bool { call.hasEnded }
  /// Whether the client reads fast enough for more replies. A stream must send nothing while this is false.
  public var hasRoom: Bool { call.hasRoom }

  /// Calls `body` each time there is room again.
  public func onRoom(_ body: @escaping () -> Void) { call.roomHandler = body }
  /// Calls `body` if the client disconnects before the call has ended.
  public func onCancel(_ body: @escaping () -> Void) { call.cancelHandler = body }

  /// Ends the call with a result.
  public func reply(_ result: M.Result) { call.end(VarlinkReply.message(result)) }
  /// Ends the call with an encoded reply.
  public func reply(encoded message: [UInt8]) { call.end(message) }
  /// Ends the call with an error.
  public func fail(_ error: some VarlinkError) { call.fail(error) }
  /// Sends a result that is followed by others. Only for clients that accept more.
  public func send(_ result: M.Result) { send(encoded: VarlinkReply.message(result, continues: true)) }
  /// Sends an encoded reply that is followed by others. Only for clients that accept more.
  public func send(encoded message: [UInt8]) {
    precondition(acceptsMore, "the client of \(M.name) expects one reply")
    call.write(message)
  }
}

/// A method of a server: the right that it requires, and its implementation.
public struct ServerMethod {
  let name: String
  /// nil if every client may call it.
  let right: Right?
  let run: (ServerCall) throws -> Void

  /// `run` must end the call, now or later; an error that it throws ends the call. A method that `requiresMore` is called only by clients
  /// that accept more than one reply.
  public init<M: VarlinkMethod>(
    _ method: M.Type, right: Right?, requiresMore: Bool = false, run: @escaping (MethodCall<M>) throws -> Void
  ) {
    name = M.name
    self.right = right
    self.run = { call in
      let parameters = try call.request.parameters(as: M.Parameters.self)
      if requiresMore, !call.request.more { throw ContractError.expectedMore }
      try run(MethodCall(parameters: parameters, call: call))
    }
  }
}
