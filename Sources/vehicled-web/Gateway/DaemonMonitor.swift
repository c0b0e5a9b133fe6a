// Whether the daemon responds. A daemon that hangs keeps its connections, and a Watch may be silent for 10 s; pages must not show its values
// as current meanwhile. While pages are connected and the daemon sends them nothing, it gets a cheap call every 3 s, one for all pages.

import Logging
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime
import Varlink

/// When to call the daemon, and when it counts as hung. Counts the seconds that this program has run without a reply: the time during
/// which it was itself stopped does not count.
struct Silence {
  enum Step { case wait, call, hung }

  /// Without a reply for this time, in seconds, the daemon is called.
  private static let callAfter = 3
  /// And then it counts as hung.
  private static let hungAfter = 5

  private var seconds = 0

  var isHung: Bool { seconds >= Self.hungAfter }

  /// The daemon has sent something, or has disconnected.
  mutating func end() { seconds = 0 }

  /// A second without a reply has passed.
  mutating func tick() -> Step {
    seconds += 1
    return seconds == Self.callAfter ? .call : seconds == Self.hungAfter ? .hung : .wait
  }
}

final class DaemonMonitor: ServiceOwner {
  /// Why a page gets no values.
  static let reason = "vehicled does not respond; see: systemctl status vehicled"

  private let path: String
  private let loop: any NIOCore.EventLoop
  private let logger = Logger(label: "vehicled-web")
  private var silence = Silence()
  /// The WebSockets of pages to the daemon, with how to close them.
  private var connections: [ObjectIdentifier: () -> Void] = [:]
  private var ticks: RepeatedTask?
  private weak var socket: ServiceHandler?

  /// `path`: the daemon's socket.
  init(_ path: String, loop: any NIOCore.EventLoop) { (self.path, self.loop) = (path, loop) }

  /// While it is hung, no further connection to it is opened: the kernel would accept it, until its queue is full.
  var isHung: Bool { silence.isHung }

  func add(_ connection: AnyObject, close: @escaping () -> Void) {
    connections[ObjectIdentifier(connection)] = close
    guard ticks == nil else { return }
    silence.end()
    ticks = loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { [monitor = NIOLoopBound(self, eventLoop: loop)] _ in
      monitor.value.tick()
    }
  }

  func remove(_ connection: AnyObject) {
    connections.removeValue(forKey: ObjectIdentifier(connection))
    guard connections.isEmpty else { return }
    ticks?.cancel()
    ticks = nil
    // A hung daemon has a call to reply to, which shows that it responds again.
    if !isHung { socket?.close() }
  }

  /// The daemon has sent something.
  func heard() {
    if isHung { logger.notice("vehicled responds again") }
    silence.end()
  }

  private func tick() {
    switch silence.tick() {
    case .wait: break
    case .call: call()
    case .hung:
      logger.warning("vehicled has not replied to a call; closing its WebSockets")
      for close in connections.values { close() }
    }
  }

  private func call() {
    let message = ByteBuffer(string: "{\"method\":\"\(VarlinkService.interface).GetInfo\"}\0")
    if let socket { return socket.send(message) }
    // Without a daemon, the connections of the pages close by themselves.
    guard let descriptor = try? UnixSocket.connect(to: path) else { return silence.end() }
    open(descriptor, on: loop) { $0.socket = $1 }.whenSuccess { $0.writeAndFlush(message, promise: nil) }
  }

  // MARK: The daemon

  let acceptsReplies = true
  func received(reply: ByteBuffer) { heard() }
  func repliesEnded() {}
  func serviceWritabilityChanged() {}
  func serviceClosed() { silence.end() }
}
