// A TCP connection to an adapter: no delay, and keepalive that notices a half-open socket within half a minute.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

extension ChannelLink {
  static func tcp(host: String, port: Int, owner: any LinkOwner) -> ChannelLink {
    let link = ChannelLink(owner: owner, goneReason: "\(host):\(port) closed the connection")
    ClientBootstrap(group: Loop.group)
      .connectTimeout(.seconds(10))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.socketOption(.so_keepalive), value: 1)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 10)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 5)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
      .channelOption(.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), value: 25_000)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2048))
      .channelInitializer { $0.add(link) }
      .connect(host: host, port: port)
      .whenComplete { result in
        // In a later turn: this may come before our owner knows us.
        Loop.post {
          switch result {
          case .success: link.cameUp()
          case .failure(let error): link.failed("cannot reach \(host):\(port): \(plainWords(error))")
          }
        }
      }
    return link
  }
}
