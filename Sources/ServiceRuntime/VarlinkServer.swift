// A Varlink server on a Unix socket: its methods, the access check before each of them, and org.varlink.service. Sessions are in
// ServerSession.swift.

import Glibc
import Logging
import Protocols
import Varlink

public final class VarlinkServer {
  public struct Limits: Sendable {
    /// The maximum number of connections.
    public var connections = 64
    /// The number of connections that are reserved for root and the user of the service.
    public var reserved = 4
    /// The maximum number of connections of all guests together. Guests are users who are not known to have a right.
    public var guests = 24
    /// The maximum size of a call, in bytes.
    public var call = 64 << 10
    /// A client with this much unread output, in bytes, gets no further replies.
    public var output = 256 << 10
    /// The maximum time from a call's first byte to its last.
    public var incompleteCall: Nanoseconds = 10 * .second
    /// The maximum time for which a client may leave its output unread.
    public var slowReader: Nanoseconds = 60 * .second

    public init() {}
  }

  /// Decides whether a peer has a right. Calls `decide`, now or later, with nil or a message that says which right the peer lacks and how
  /// to get it.
  public typealias Authorize = (_ right: Right, _ peer: Peer, _ decide: @escaping (_ denial: String?) -> Void) -> Void

  let limits: Limits
  private let product: String
  private let interfaces: [Interface]
  private var methods: [String: ServerMethod] = [:]
  private let loop: EventLoop
  private let authorize: Authorize
  private let isKnown: (Peer) -> Bool
  private var counts: ConnectionCounts
  private var rate = ConnectionRate()
  private var sessions: [ObjectIdentifier: ServerSession] = [:]
  private var socket: ServerSocket?
  private var logLimit = LogLimit()
  private let logger: Logger

  /// Creates a server of these interfaces and org.varlink.service. `product` is the name of the program. Each declared method needs one
  /// implementation. `isKnown` returns at once whether a client is known to have a right; other clients get fewer connections.
  public init(
    product: String, interfaces: [Interface], methods: [ServerMethod], limits: Limits = Limits(), loop: EventLoop,
    isKnown: @escaping (Peer) -> Bool, authorize: @escaping Authorize
  ) {
    self.product = product
    self.interfaces = [.service] + interfaces
    self.limits = limits
    self.loop = loop
    self.authorize = authorize
    self.isKnown = isKnown
    counts = ConnectionCounts(limit: limits.connections, reserved: limits.reserved, guests: limits.guests)
    logger = Logger(label: product)
    for method in methods + serviceMethods {
      precondition(self.methods.updateValue(method, forKey: method.name) == nil, "\(method.name) has two implementations")
    }
    let declared = Set(self.interfaces.flatMap { interface in interface.methods.map { "\(interface.name).\($0.name)" } })
    precondition(declared == Set(self.methods.keys), "methods and interfaces differ: \(declared.symmetricDifference(self.methods.keys))")
  }

  /// Serves the socket that systemd has passed, or creates one at `path` with this mode.
  public func start(path: String, mode: mode_t) throws(ValueError) {
    let socket = try ServerSocket(path: path, mode: mode, program: product, logger: logger)
    socket.accepted = { [weak self] in self?.accept($0) }
    self.socket = socket
    loop.add(socket)
  }

  /// Stops listening and closes all connections.
  public func close() {
    socket?.close()
    socket = nil
    for session in sessions.values { session.close() }
  }

  /// The number of connections.
  public var connections: Int { sessions.count }

  // MARK: Sessions

  private func accept(_ client: CInt) {
    // The cheapest checks come first: thousands of clients can connect per second.
    let now = SystemClock.monotonic
    guard let user = Peer.user(of: client), !rate.isRateLimited(user, at: now), let peer = Peer(socket: client) else {
      Glibc.close(client)
      return
    }
    let isGuest = !peer.isOwner && !isKnown(peer)
    guard !isGuest || rate.admit(user: user, at: now) else {
      Glibc.close(client)
      return
    }
    guard counts.admit(user: user, isOwner: peer.isOwner, isGuest: isGuest) else {
      log("client connection rejected: user \(user) has too many connections; close some of them", peer)
      Glibc.close(client)
      return
    }
    let session = ServerSession(client, peer: peer, isGuest: isGuest, server: self)
    sessions[ObjectIdentifier(session)] = session
    loop.add(session)
  }

  func ended(_ session: ServerSession) {
    guard sessions.removeValue(forKey: ObjectIdentifier(session)) != nil else { return }
    counts.leave(user: session.peer.user, isGuest: session.isGuest)
  }

  /// Logs what a client did wrong, rate limited.
  func log(_ message: String, _ peer: Peer) {
    guard let message = logLimit.admit(message, at: SystemClock.monotonic) else { return }
    logger.notice("\(message)", metadata: ["pid": "\(peer.pid)"])
  }

  // MARK: Calls

  func answer(_ call: ServerCall) {
    guard let method = methods[call.request.method] else { return call.fail(unknownMethod(call.request.method)) }
    guard let right = method.right else { return run(method, call) }
    authorize(right, call.peer) { [weak self] denial in
      guard let self, !call.hasEnded else { return }
      if let denial { call.fail(ContractError.permissionDenied(missing: denial)) } else { self.run(method, call) }
    }
  }

  private func run(_ method: ServerMethod, _ call: ServerCall) {
    do { try method.run(call) } catch let error as any VarlinkError {
      call.fail(error)
    } catch {
      logger.error("\(method.name) failed: \(error)")
      call.fail(ContractError.deviceError(device: "", code: .internal, message: "\(error)"))
    }
  }

  private func unknownMethod(_ method: String) -> ContractError {
    let interface = String(method.prefix(upTo: method.lastIndex(of: ".") ?? method.startIndex))
    return interfaces.contains { $0.name == interface } ? .methodNotFound(method: method) : .interfaceNotFound(interface: interface)
  }

  private var serviceMethods: [ServerMethod] {
    let result = VarlinkService.GetInfo.Result(
      vendor: "vehicled", product: product, version: Protocols.version, url: "", interfaces: interfaces.map(\.name))
    let texts = Dictionary(uniqueKeysWithValues: interfaces.map { ($0.name, $0.text) })
    return [
      ServerMethod(VarlinkService.GetInfo.self, right: nil) { $0.reply(result) },
      ServerMethod(VarlinkService.GetInterfaceDescription.self, right: nil) { call in
        let name = call.parameters.interface
        guard let text = texts[name] else { throw ContractError.interfaceNotFound(interface: name) }
        call.reply(.init(description: text))
      },
    ]
  }
}
