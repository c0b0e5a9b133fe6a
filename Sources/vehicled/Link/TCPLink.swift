// A TCP connection with TCP_NODELAY. With `disconnectsUnresponsivePeer`, keepalive detects a half-open connection within 30 s. Without it,
// the connection survives outages of up to 1 h, and Linux 6.15 and later retransmits unacknowledged data at least every second.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

extension ChannelLink {
  static func tcp(host: String, port: Int, disconnectsUnresponsivePeer: Bool, owner: any LinkOwner) -> ChannelLink {
    let link = ChannelLink(owner: owner, closedReason: "\(host):\(port) closed the connection")
    ClientBootstrap(group: Loop.group)
      .resolver(HostResolver())
      .connectTimeout(.seconds(10))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.socketOption(.so_keepalive), value: disconnectsUnresponsivePeer ? 1 : 0)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 10)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 5)
      .channelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
      // By default the kernel retransmits for about 15 min, but for only 15 s with the backoff of `limitBackoff`.
      .channelOption(.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), value: disconnectsUnresponsivePeer ? 25_000 : 3_600_000)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1024))
      .channelInitializer { $0.add(link) }
      .connect(host: host, port: port)
      .whenComplete { result in
        // In a later turn, because the owner may not have stored this link yet.
        Loop.post {
          switch result {
          case .success:
            if !disconnectsUnresponsivePeer { link.limitBackoff() }
            link.cameUp()
          case .failure(let error): link.wentDown("cannot reach \(host):\(port): \(errorMessage(error))")
          }
        }
      }
    return link
  }

  /// TCP_RTO_MAX_MS (Linux 6.15), which glibc does not define yet, and the minimum value that it accepts.
  static let maxBackoff: (option: CInt, milliseconds: CInt) = (44, 1000)

  /// Limits the retransmission backoff. After an outage the kernel waits about as long as the outage lasted before it retransmits,
  /// which would delay a Stop. TCP_THIN_LINEAR_TIMEOUTS does not help: a stream of setpoints has more than three segments in
  /// flight. A kernel without the option rejects it and keeps backing off.
  private func limitBackoff() {
    guard let descriptor else { return }
    var time = Self.maxBackoff.milliseconds
    setsockopt(descriptor, CInt(IPPROTO_TCP), Self.maxBackoff.option, &time, socklen_t(MemoryLayout<CInt>.size))
  }
}
