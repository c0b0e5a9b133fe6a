// A client of vehicled-history that imports blocks one after the other. While vehicled-history stores a block, the caller can prepare the
// next one.

import CLinux
import Glibc
import Protocols
import ServiceRuntime
import Varlink

final class HistoryImporter {
  /// The timeout of a call in ms; long, because the service may be busy with a computation.
  private static let timeout: CInt = 120_000

  private let path: String
  private let descriptor: CInt
  private var framing = VarlinkFraming(limit: VarlinkFraming.replyLimit)
  private var isPending = false

  init(_ path: String) throws(SimulatorError) {
    self.path = path
    do { descriptor = try UnixSocket.connect(to: path) } catch {
      throw SimulatorError("\(error.description); start vehicled-history, or choose another --socket")
    }
  }

  deinit { close(descriptor) }

  /// Sends a block, once the previous one has been stored.
  func send(_ parameters: HistoryContract.ImportMethod.Parameters) throws {
    try finish()
    var rest = try VarlinkCall.message(HistoryContract.ImportMethod.self, parameters)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno != EAGAIN, errno != EINTR { throw SimulatorError("cannot write to \(path)", errno: errno) }
      rest = rest.dropFirst(max(0, count))
      if count < 0 { try wait(POLLOUT) }
    }
    isPending = true
  }

  /// Waits until the last block has been stored.
  func finish() throws {
    guard isPending else { return }
    isPending = false
    var chunk = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      if let message: [UInt8] = try framing.next() { return try check(VarlinkReply(message)) }
      try wait(POLLIN)
      let count = recv(descriptor, &chunk, chunk.count, 0)
      if count == 0 { throw SimulatorError("vehicled-history has closed the connection") }
      if count < 0, errno != EAGAIN, errno != EINTR { throw SimulatorError("cannot read from \(path)", errno: errno) }
      framing.append(chunk[..<max(0, count)])
    }
  }

  private func check(_ reply: VarlinkReply) throws {
    guard let name = reply.error else { return }
    let parameters = (try? reply.parameters(as: JSON.self)) ?? [:]
    throw SimulatorError(
      HistoryContractError(name: name, parameters: parameters)?.message ?? ContractError(name: name, parameters: parameters)?.message
        ?? "vehicled-history reports \(name)")
  }

  private func wait(_ events: CInt) throws {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    if poll(&entry, 1, Self.timeout) == 0 {
      throw SimulatorError("no reply from vehicled-history for \(Self.timeout / 1000) s; see \"systemctl status vehicled-history\"")
    }
  }
}
