// A TCP connection to an adapter: no delay, and keepalive that notices a half-open socket within half a minute.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class TCPLink: Link {
  private weak var owner: (any LinkOwner)?
  private let channel: ChannelLink

  init(host: String, port: Int, owner: any LinkOwner) {
    self.owner = owner
    let handler = ChannelLink(owner: owner, goneReason: "\(host):\(port) closed the connection")
    channel = handler
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
      Loop.post {
        switch result {
        case .success: handler.cameUp()
        case .failure(let error): self?.failed("cannot reach \(host):\(port): \(plainWords(error))")
        }
      }
    }
  }

  private func failed(_ reason: String) {
    let owner = owner
    self.owner = nil
    owner?.linkWentDown(reason, final: false)
  }

  func send(_ bytes: [UInt8], id: SendID?) {
    channel.send(bytes, id: id)
  }

  func close() {
    owner = nil
    channel.close()
  }
}
