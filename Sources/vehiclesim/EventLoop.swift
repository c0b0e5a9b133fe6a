// A single-threaded event loop around ppoll(2), ended by SIGINT and SIGTERM.

import CLinux
import Glibc
import Protocols

/// A file descriptor, a timer, or both.
class EventSource {
  /// The descriptor to poll; negative for none.
  var descriptor: Int32 { -1 }
  /// The events to poll for.
  var interest: Int16 { 0 }
  /// When to call `timerFired`.
  final var wake: Instant?
  final var isClosed = false

  func ready(_ events: Int16, at now: Instant) {}
  func timerFired(at now: Instant) {}
}

final class EventLoop {
  private var sources: [EventSource] = []
  private var descriptors: [pollfd] = []
  private let stop: StopSignal

  /// Creates a loop and installs the handlers of SIGINT and SIGTERM.
  init() throws {
    stop = StopSignal()
    try stop.arm()
    sources = [stop]
  }

  /// Adds a source. Sources are served in the order in which they were added.
  func add(_ source: EventSource) { sources.append(source) }

  /// Runs until SIGINT or SIGTERM.
  func run() throws {
    while !stop.isRequested {
      try wait()
      let now = SimulatorClock.now
      for (position, polled) in descriptors.enumerated() where polled.revents != 0 && !sources[position].isClosed {
        sources[position].ready(polled.revents, at: now)
      }
      for source in sources {
        if let wake = source.wake, wake <= now, !source.isClosed { source.timerFired(at: now) }
      }
      sources.removeAll { $0.isClosed }
    }
  }

  /// Waits for an event or the next timer.
  private func wait() throws {
    descriptors.removeAll(keepingCapacity: true)
    for source in sources { descriptors.append(pollfd(fd: source.descriptor, events: source.interest, revents: 0)) }
    let next = sources.lazy.compactMap(\.wake).min()
    let result = clinux_poll(&descriptors, descriptors.count, next.map { max(0, $0 - SimulatorClock.now) } ?? -1)
    if result >= 0 { return }
    if result != -EINTR { throw SimulatorError("cannot wait for clients", errno: -result) }
    for position in descriptors.indices { descriptors[position].revents = 0 }
  }
}

/// The signals that end the program, delivered through a pipe.
private final class StopSignal: EventSource {
  nonisolated(unsafe) private static var writeEnd: Int32 = -1
  private(set) var isRequested = false
  private var readEnd: Int32 = -1

  func arm() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SimulatorError("cannot create a pipe", errno: errno) }
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
    sigprocmask(SIG_UNBLOCK, &mask, nil)  // the parent process may have blocked them
  }

  override var descriptor: Int32 { readEnd }
  override var interest: Int16 { Int16(POLLIN) }
  override func ready(_ events: Int16, at now: Instant) { isRequested = true }
}
