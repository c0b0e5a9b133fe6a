// A link that the peer makes: a port on which one peer at a time is let in, until it is closed. A second one, and whoever does
// not come from the network that is meant, are hung up on. That a peer goes does not end the link: the next may come.

import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class ListeningLink: Link, LinkOwner {
  private weak var owner: (any LinkOwner)?
  private let place: String
  private let host: String
  private let port: Int
  private let network: IPv4Network?
  private let disk: Disk
  private var door: (any Channel)?
  private var peer: ChannelLink?
  private(set) var words: String?
  private var isClosed = false
  /// When the last one went: who comes and goes at once does so ten times a second at the most.
  private var lastWent: Instant = .min
  private static let breath: Nanoseconds = 100 * .millisecond

  /// Begins to listen, on this address of ours, for peers of this network.
  init(host: String, port: Int, network: IPv4Network?, disk: Disk, owner: any LinkOwner) {
    self.owner = owner
    (place, self.host, self.port, self.network, self.disk) = ("\(host):\(port)", host, port, network, disk)
    words = "listening at \(place)"
    ServerBootstrap(group: Loop.group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.backlog, value: 8)
      .serverChannelInitializer(AcceptPause.add)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2048))
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { [weak self] in try Loop.assumeIsolated { try self?.letIn(channel) } }
      }
      .bind(host: host, port: port)
      .whenComplete { result in
        // In a later turn: this may come before our owner knows us.
        Loop.post { [self] in opened(result) }
      }
  }

  private func opened(_ result: Result<any Channel, any Error>) {
    switch result {
    case .success(let channel):
      if isClosed { return channel.close(promise: nil) }
      door = channel
      owner?.linkHasNews()
    case .failure(let error as IOError) where error.errnoCode == EADDRINUSE:
      let (host, port) = (host, port)
      // To look through all processes takes its time.
      disk.read {
        PortHolder.description(of: port, at: host)
      } then: { holder in
        self.failed("port \(port) is taken by \((try? holder.get()) ?? "another program"): stop that first")
      }
    case .failure(let error): failed("cannot listen at \(place): \(plainWords(error))")
    }
  }

  private func failed(_ reason: String) {
    owner?.linkWentDown(reason, final: true)
    owner = nil
  }

  private func letIn(_ channel: any Channel) throws {
    let address = channel.remoteAddress?.ipAddress ?? "somebody"
    if let network, !network.contains(address) {
      let whom = "\(address), which is not of \(network)"
      refuse(channel, whom)
      if !isClosed { owner?.linkRefused(whom) }
      return
    }
    guard peer == nil, !isClosed else { return refuse(channel, "\(address): somebody is connected already") }
    guard Clock.monotonic() &- Self.breath >= lastWent else { return channel.close(promise: nil) }
    let link = ChannelLink(owner: self, goneReason: "\(address) closed the connection", isAccepted: true)
    try channel.pipeline.syncOperations.addHandler(link)
    peer = link
    words = "\(address) is connected"
  }

  private func refuse(_ channel: any Channel, _ whom: String) {
    channel.close(promise: nil)
    guard peer == nil else { return }
    words = "listening at \(place); hung up on \(whom)"
    owner?.linkHasNews()
  }

  // MARK: The peer

  func linkCameUp(maximumSend: Int?) { owner?.linkCameUp(maximumSend: maximumSend) }
  func linkReceived(_ bytes: [UInt8]) { owner?.linkReceived(bytes) }
  func linkSent(_ id: SendID, failure: String?) { owner?.linkSent(id, failure: failure) }
  func linkHasNews() { owner?.linkHasNews() }
  func linkWentDown(_ reason: String, final: Bool) { peerWent(reason) }

  private func peerWent(_ reason: String) {
    (peer, lastWent) = (nil, Clock.monotonic())
    words = "listening at \(place)"
    owner?.linkLostPeer(reason)
  }

  func send(_ bytes: [UInt8], id: SendID?) { peer?.send(bytes, id: id) }

  func hangUp(_ reason: String) -> Bool {
    guard let peer else { return true }
    peer.close()
    peerWent(reason)
    return true
  }

  var descriptor: CInt? { peer?.descriptor }

  func close() {
    isClosed = true
    owner = nil
    peer?.close()
    door?.close(promise: nil)
  }
}
