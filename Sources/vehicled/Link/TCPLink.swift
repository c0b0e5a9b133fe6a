// A TCP connection to an adapter: no delay, and keepalive that notices a half-open socket within half a minute.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class TCPLink: Link {
  private weak var owner: (any LinkOwner)?
  private var channel: ChannelLink?

  init(host: String, port: Int, owner: any LinkOwner) {
    self.owner = owner
    let handler = ChannelLink(owner: owner, goneReason: "\(host):\(port) closed the connection")
    let bootstrap = ClientBootstrap(group: Loop.group)
      .connectTimeout(.seconds(10))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.socketOption(.so_keepalive), value: 1)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 10)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 5)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
      .channelOption(.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), value: 25_000)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2048))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(handler) }
        }
      }
    bootstrap.connect(host: host, port: port).whenComplete { [weak self] result in
      // In a later turn: this may come before our owner knows us.
      Loop.post { self?.finished(result.map { _ in handler }, place: "\(host):\(port)") ?? handler.close() }
    }
  }

  private func finished(_ result: Result<ChannelLink, any Error>, place: String) {
    switch result {
    case .success(let handler):
      guard let owner else { return handler.close() }
      channel = handler
      owner.linkCameUp(maximumSend: nil)
    case .failure(let error):
      let owner = owner
      self.owner = nil
      owner?.linkWentDown("cannot reach \(place): \(plainWords(error))", final: false)
    }
  }

  func send(_ bytes: [UInt8], id: SendID?) {
    channel?.send(bytes, id: id)
  }

  func close() {
    owner = nil
    channel?.close()
  }
}
