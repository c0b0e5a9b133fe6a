// A link to which the peer connects: a listening port for one peer at a time. Further peers, and peers outside the permitted
// network, are closed at once. When the peer disconnects, the link waits for the next one.

import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class ListeningLink: Link, LinkOwner {
  private weak var owner: (any LinkOwner)?
  private let address: String
  private let host: String
  private let port: Int
  private let network: IPv4Network?
  private let disk: Disk
  private var serverChannel: (any Channel)?
  private var peer: ChannelLink?
  private(set) var waitReason: String?
  private var isClosed = false
  /// When the last peer disconnected. Limits reconnects to ten per second.
  private var lastDisconnect: Instant = .min
  private static let minReconnectInterval: Nanoseconds = 100 * .millisecond

  /// Starts listening on this local address for peers from this network.
  init(host: String, port: Int, network: IPv4Network?, disk: Disk, owner: any LinkOwner) {
    self.owner = owner
    (address, self.host, self.port, self.network, self.disk) = ("\(host):\(port)", host, port, network, disk)
    waitReason = "listening on \(address)"
    ServerBootstrap(group: Loop.group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.backlog, value: 8)
      .serverChannelInitializer(AcceptPause.add)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1024))
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { [weak self] in try Loop.assumeIsolated { try self?.accept(channel) } }
      }
      .bind(host: host, port: port)
      .whenComplete { result in
        // In a later turn, because the owner may not have stored this link yet.
        Loop.post { [self] in opened(result) }
      }
  }

  private func opened(_ result: Result<any Channel, any Error>) {
    switch result {
    case .success(let channel):
      if isClosed { return channel.close(promise: nil) }
      serverChannel = channel
      owner?.linkDetailsChanged()
    case .failure(let error as IOError) where error.errnoCode == EADDRINUSE:
      let (host, port) = (host, port)
      // Runs on the disk's thread for long reads, because the search covers all processes.
      disk.read {
        PortHolder.description(of: port, at: host)
      } then: { holder in
        self.failed("port \(port) is in use by \((try? holder.get()) ?? "another program"): stop it first")
      }
    case .failure(let error): failed("cannot listen on \(address): \(errorMessage(error))")
    }
  }

  private func failed(_ reason: String) {
    owner?.linkWentDown(reason, final: true)
    owner = nil
  }

  private func accept(_ channel: any Channel) throws {
    let peerAddress = channel.remoteAddress?.ipAddress ?? "unknown address"
    if let network, !network.contains(peerAddress) {
      let reason = "\(peerAddress), which is not in \(network)"
      reject(channel, reason)
      if !isClosed { owner?.linkRejectedPeer(reason) }
      return
    }
    guard peer == nil, !isClosed else { return reject(channel, "\(peerAddress), because another peer is connected") }
    guard Clock.monotonic() &- Self.minReconnectInterval >= lastDisconnect else { return channel.close(promise: nil) }
    let link = ChannelLink(owner: self, closedReason: "\(peerAddress) closed the connection", isAccepted: true)
    try channel.pipeline.syncOperations.addHandler(link)
    peer = link
    waitReason = "\(peerAddress) is connected"
  }

  private func reject(_ channel: any Channel, _ reason: String) {
    channel.close(promise: nil)
    guard peer == nil else { return }
    waitReason = "listening on \(address); rejected \(reason)"
    owner?.linkDetailsChanged()
  }

  // MARK: The peer

  func linkCameUp(maximumSend: Int?) { owner?.linkCameUp(maximumSend: maximumSend) }
  func linkReceived(_ bytes: [UInt8]) { owner?.linkReceived(bytes) }
  func linkSent(_ id: SendID, failure: String?) { owner?.linkSent(id, failure: failure) }
  func linkDetailsChanged() { owner?.linkDetailsChanged() }
  func linkWentDown(_ reason: String, final: Bool) { peerDisconnected(reason) }

  private func peerDisconnected(_ reason: String) {
    (peer, lastDisconnect) = (nil, Clock.monotonic())
    waitReason = "listening on \(address)"
    owner?.linkLostPeer(reason)
  }

  func send(_ bytes: [UInt8], id: SendID?) { peer?.send(bytes, id: id) }

  func disconnectPeer(_ reason: String) -> Bool {
    guard let peer else { return true }
    peer.close()
    peerDisconnected(reason)
    return true
  }

  var descriptor: CInt? { peer?.descriptor }

  func close() {
    isClosed = true
    owner = nil
    peer?.close()
    serverChannel?.close(promise: nil)
  }
}
