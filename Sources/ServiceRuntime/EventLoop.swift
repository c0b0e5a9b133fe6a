// A single-threaded event loop around ppoll(2), ended by SIGINT and SIGTERM. It suits programs with up to a few hundred descriptors.

import CLinux
import Glibc
import Protocols

/// A file descriptor, a timer, or both.
open class EventSource {
  /// The descriptor to poll; negative for none.
  open var descriptor: Int32 { -1 }
  /// The events to poll for.
  open var interest: Int16 { 0 }
  /// When to call `timerFired`.
  public final var wake: Instant?
  /// Whether the loop is to remove the source.
  public final var isClosed = false

  public init() {}

  open func ready(_ events: Int16, at now: Instant) {}
  open func timerFired(at now: Instant) {}
}

/// The event loop of a program.
public final class EventLoop {
  private var sources: [EventSource] = []
  private var descriptors: [pollfd] = []
  private let stopSignal = StopSignal()
  private var isStopped = false

  /// Creates a loop and ignores SIGPIPE. With `handlesSignals`, which only one loop of a process can have, SIGINT and SIGTERM end `run`.
  public init(handlesSignals: Bool = true) throws(ValueError) {
    signal(SIGPIPE, SIG_IGN)
    guard handlesSignals else { return }
    try stopSignal.arm()
    sources = [stopSignal]
  }

  /// Adds a source. Sources are served in the order in which they were added.
  public func add(_ source: EventSource) { sources.append(source) }

  /// Runs until SIGINT, SIGTERM or `stop`.
  public func run() throws(ValueError) {
    isStopped = false
    while !stopSignal.isRequested, !isStopped { try turn() }
  }

  /// Ends `run` after the current turn.
  public func stop() { isStopped = true }

  /// Waits for events or a timer and serves them.
  private func turn() throws(ValueError) {
    try wait()
    let now = SystemClock.monotonic
    for (position, polled) in descriptors.enumerated() where polled.revents != 0 && !sources[position].isClosed {
      sources[position].ready(polled.revents, at: now)
    }
    for source in sources {
      if let wake = source.wake, wake <= now, !source.isClosed { source.timerFired(at: now) }
    }
    sources.removeAll { $0.isClosed }
  }

  private func wait() throws(ValueError) {
    descriptors.removeAll(keepingCapacity: true)
    for source in sources { descriptors.append(pollfd(fd: source.descriptor, events: source.interest, revents: 0)) }
    let next = sources.lazy.compactMap(\.wake).min()
    let result = clinux_poll(&descriptors, descriptors.count, next.map { max(0, $0 - SystemClock.monotonic) } ?? -1)
    if result >= 0 { return }
    if result != -EINTR { throw ValueError("cannot wait for events: \(errnoMessage(-result))") }
    for position in descriptors.indices { descriptors[position].revents = 0 }
  }
}

/// The signals that end the program, delivered through a pipe.
private final class StopSignal: EventSource {
  nonisolated(unsafe) private static var writeEnd: Int32 = -1
  private(set) var isRequested = false
  private var readEnd: Int32 = -1

  func arm() throws(ValueError) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw ValueError("cannot create a pipe: \(errnoMessage(errno))") }
    (readEnd, StopSignal.writeEnd) = (ends[0], ends[1])
    for end in ends {
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
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
