// A TCP connection to an adapter: no delay, and keepalive that notices a half-open socket within half a minute, unless the
// peer is one that must not be given up: that one is kept for an hour, and what waits is sent again every second.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

extension ChannelLink {
  static func tcp(host: String, port: Int, givesUp: Bool, owner: any LinkOwner) -> ChannelLink {
    let link = ChannelLink(owner: owner, goneReason: "\(host):\(port) closed the connection")
    ClientBootstrap(group: Loop.group)
      .resolver(HostResolver())
      .connectTimeout(.seconds(10))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.socketOption(.so_keepalive), value: givesUp ? 1 : 0)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 10)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 5)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
      // Without a limit the kernel says it again for a quarter of an hour; with a short back-off for 15 s only.
      .channelOption(.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), value: givesUp ? 25_000 : 3_600_000)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2048))
      .channelInitializer { $0.add(link) }
      .connect(host: host, port: port)
      .whenComplete { result in
        // In a later turn: this may come before our owner knows us.
        Loop.post {
          switch result {
          case .success:
            if !givesUp { link.boundBackOff() }
            link.cameUp()
          case .failure(let error): link.failed("cannot reach \(host):\(port): \(plainWords(error))")
          }
        }
      }
    return link
  }

  /// TCP_RTO_MAX_MS, of Linux 6.15, and its least value: glibc has no name for it yet.
  static let maxBackOff: (option: CInt, milliseconds: CInt) = (44, 1000)

  /// After a hole in the network the kernel waits about as long as the hole lasted before it sends again: a Stop would wait
  /// with it. TCP_THIN_LINEAR_TIMEOUTS is no help: a stream of set-points has more than three segments on its way. A kernel
  /// that does not know the option refuses it, and backs off.
  private func boundBackOff() {
    guard let descriptor else { return }
    var time = Self.maxBackOff.milliseconds
    setsockopt(descriptor, CInt(IPPROTO_TCP), Self.maxBackOff.option, &time, socklen_t(MemoryLayout<CInt>.size))
  }
}
