// A connection to the daemon's socket that sends one call and receives its replies. It never blocks: its owner polls the descriptor.

import CLinux
import Glibc
import Protocols
import Varlink

/// Why a call to the daemon has failed.
public enum DaemonFailure: Error, Equatable, Sendable {
  /// The daemon has rejected the call, or has ended it with an error.
  case rejected(ContractError)
  /// There is no connection, or the daemon did not reply.
  case unavailable(String)

  /// The message: what happened, the cause, what to do.
  public var message: String {
    switch self {
    case .rejected(let error): error.message
    case .unavailable(let message): message
    }
  }
}

struct CallConnection {
  let descriptor: CInt
  private var framing = VarlinkFraming(limit: VarlinkFraming.replyLimit)
  private var unsent: ArraySlice<UInt8>
  private(set) var hasEnded = false
  /// The maximum number of bytes that one call of `receive` reads.
  static let readSize = 64 << 10

  /// Connects, and begins to send the call.
  init(to path: String, call: [UInt8]) throws(DaemonFailure) {
    do { descriptor = try UnixSocket.connect(to: path) } catch {
      throw .unavailable("\(error.description); see \"systemctl status vehicled\"")
    }
    unsent = call[...]
    send()
  }

  var interest: Int16 { Int16(POLLIN) | (unsent.isEmpty ? 0 : Int16(POLLOUT)) }

  /// Sends as much of the rest of the call as the kernel accepts.
  mutating func send() {
    while !unsent.isEmpty {
      let count = unsent.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      // After an error, a reply from the daemon may still be waiting, so the end is left for `receive` to detect.
      unsent = count < 0 ? [] : unsent.dropFirst(count)
    }
  }

  /// Reads from the socket once. Returns whether more may be waiting.
  mutating func receive() -> Bool {
    let count = withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 1) { chunk in
      let count = recv(descriptor, chunk.baseAddress, chunk.count, 0)
      if count > 0 { framing.append(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(chunk)[..<count])) }
      return count
    }
    if count == 0 || count < 0 && errno != EAGAIN && errno != EINTR { hasEnded = true }
    return count == Self.readSize
  }

  /// The next reply that has arrived; nil if there is none. Throws for an error reply, for an invalid one, and after the end.
  mutating func next() throws(DaemonFailure) -> VarlinkReply? {
    let reply: VarlinkReply?
    do { reply = try framing.next { try VarlinkReply($0) } } catch {
      throw .unavailable("invalid reply from vehicled: \((error as? VarlinkViolation)?.description ?? "longer than 16 MiB")")
    }
    guard let reply else {
      if hasEnded { throw .unavailable("vehicled has closed the connection") }
      return nil
    }
    guard let name = reply.error else { return reply }
    let parameters = (try? reply.parameters(as: JSON.self)) ?? [:]
    throw ContractError(name: name, parameters: parameters).map { .rejected($0) } ?? .unavailable("vehicled reports \(name)")
  }

  func close() { Glibc.close(descriptor) }
}

/// An event source that makes a call to the daemon over a connection of its own.
public class DaemonSource: EventSource {
  private var connection: CallConnection?

  final var isConnected: Bool { connection != nil }

  /// Connects to the socket at `path`, and sends the call.
  final func connect(to path: String, call: [UInt8]) throws(DaemonFailure) { connection = try CallConnection(to: path, call: call) }

  final func disconnect() {
    connection?.close()
    connection = nil
  }

  /// Closes the connection and abandons the call. No event follows.
  public final func close() {
    disconnect()
    isClosed = true
  }

  public final override var descriptor: Int32 { connection?.descriptor ?? -1 }
  public override var interest: Int16 { connection?.interest ?? 0 }

  /// Sends and receives as much as possible without blocking. Returns whether more may be waiting to be read.
  @discardableResult
  final func exchange() -> Bool {
    connection?.send()
    return connection?.receive() ?? false
  }

  /// Returns the next complete reply, or nil if there is none yet.
  final func nextReply() throws(DaemonFailure) -> VarlinkReply? { try connection?.next() }
}
