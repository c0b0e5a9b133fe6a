// A TCP connection to an adapter: no delay, and keepalive that notices a half-open socket within half a minute, unless the
// peer is one that must not be given up.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

extension ChannelLink {
  static func tcp(host: String, port: Int, givesUp: Bool, owner: any LinkOwner) -> ChannelLink {
    let link = ChannelLink(owner: owner, goneReason: "\(host):\(port) closed the connection")
    ClientBootstrap(group: Loop.group)
      .connectTimeout(.seconds(10))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.socketOption(.so_keepalive), value: givesUp ? 1 : 0)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 10)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 5)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
      // Without a limit the kernel says it again for a quarter of an hour.
      .channelOption(.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), value: givesUp ? 25_000 : 0)
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
