// One thread, one ppoll(2): everything that has a descriptor or a moment to wait for is a Watched. Signals end it.
// Nothing else in the program may block.

import CLinux
import Glibc
import Protocols

/// Something that the loop waits for.
class EventSource {
  /// What poll(2) looks at.
  var descriptor: Int32 { -1 }
  /// Which events of it matter now.
  var interest: Int16 { 0 }
  /// When `woken` is wanted.
  final var wake: Instant?
  final var isClosed = false

  func ready(_ events: Int16, at now: Instant) {}
  func woken(at now: Instant) {}
}

final class EventLoop {
  private var watched: [EventSource] = []
  private var descriptors: [pollfd] = []
  private let stop: StopSignal

  /// A loop that SIGINT and SIGTERM end from now on.
  init() throws {
    stop = StopSignal()
    try stop.arm()
    watched = [stop]
  }

  /// Watches one thing more. Things are served in the order they came.
  func add(_ one: EventSource) { watched.append(one) }

  /// Runs until SIGINT or SIGTERM.
  func run() throws {
    while !stop.isRequested {
      try wait()
      let now = SimulatorClock.now
      for (position, polled) in descriptors.enumerated() where polled.revents != 0 && !watched[position].isClosed {
        watched[position].ready(polled.revents, at: now)
      }
      for one in watched {
        if let wake = one.wake, wake <= now, !one.isClosed { one.woken(at: now) }
      }
      watched.removeAll { $0.isClosed }
    }
  }

  /// Waits for an event or the next moment.
  private func wait() throws {
    descriptors.removeAll(keepingCapacity: true)
    for one in watched { descriptors.append(pollfd(fd: one.descriptor, events: one.interest, revents: 0)) }
    let next = watched.lazy.compactMap(\.wake).min()
    let result = clinux_poll(&descriptors, descriptors.count, next.map { max(0, $0 - SimulatorClock.now) } ?? -1)
    if result >= 0 { return }
    if result != -EINTR { throw SimulatorError("cannot wait for clients", errno: -result) }
    for position in descriptors.indices { descriptors[position].revents = 0 }
  }
}

/// The signals that end the program, as a pipe that becomes readable.
private final class StopSignal: EventSource {
  nonisolated(unsafe) private static var writeEnd: Int32 = -1
  private(set) var isRequested = false
  private var readEnd: Int32 = -1

  func arm() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SimulatorError("cannot make a pipe", errno: errno) }
    (readEnd, StopSignal.writeEnd) = (ends[0], ends[1])
    for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    signal(SIGPIPE, SIG_IGN)
    var mask = sigset_t()
    sigemptyset(&mask)
    for number in [SIGINT, SIGTERM] {
      signal(number) { _ in
        var byte: UInt8 = 0
        _ = write(StopSignal.writeEnd, &byte, 1)
      }
      sigaddset(&mask, number)
    }
    sigprocmask(SIG_UNBLOCK, &mask, nil)  // whoever started us may have blocked them
  }

  override var descriptor: Int32 { readEnd }
  override var interest: Int16 { Int16(POLLIN) }
  override func ready(_ events: Int16, at now: Instant) { isRequested = true }
}
