// The TCP endpoint: a listening socket with one machine per client. Without free file descriptors it pauses.

import Glibc
import Protocols

final class PeerServer: EventSource {
  private(set) var url = ""
  private var file: Int32 = -1
  private let loop: EventLoop
  private let log: ActivityLog
  private let machine: () -> any Machine
  private var count = 0

  /// Opens the port. `machine` creates the machine of each client.
  init(host: String, port: UInt16, loop: EventLoop, log: ActivityLog, machine: @escaping () -> any Machine) throws {
    self.loop = loop
    self.log = log
    self.machine = machine
    super.init()
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    file = try TCPPort.listen(host: host, port: port, queue: 4096)
    url = Endpoint.url(host: host, port: port == 0 ? TCPPort.number(of: file) : port)
    loop.add(self)
  }

  override var descriptor: Int32 { file }
  override var interest: Int16 { Int16(wake == nil ? POLLIN : 0) }
  override func woken(at now: Instant) { wake = nil }

  override func ready(_ events: Int16, at now: Instant) {
    while true {
      guard let client = TCPPort.accept(file) else {
        if errno != EAGAIN { wake = now + 100 * .millisecond }
        return
      }
      count += 1
      loop.add(PeerConnection(client, machine: machine(), name: "client \(count)", log: log))
    }
  }
}
