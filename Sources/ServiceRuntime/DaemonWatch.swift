// Watches the daemon: calls Watch on its socket, and calls it again after the connection has ended. A daemon that sends nothing for three
// heartbeat periods counts as dead. The connection also ends if this program or the computer was stopped for that time, because the daemon
// merges what a client does not read, or did not run itself. The watch reads a limited amount per turn of the loop, so that other sources
// are served in between. If its owner does not need each value at once, it pauses after each read: one long read takes much less CPU time
// than many short ones.

import CLinux
import Glibc
import Protocols
import Varlink

public final class DaemonWatch: DaemonSource {
  public enum Event: Sendable {
    /// A reply from the daemon. The first one after connecting is a snapshot.
    case result(Contract.Watch.Result)
    /// The daemon has skipped this many replies before the next one.
    case gap(missing: Int)
    /// The connection has ended or could not be opened. The next attempt is at `retry`, by the monotonic clock.
    case disconnected(DaemonFailure, retry: Instant)
  }

  /// The time without a reply after which the daemon counts as dead: three heartbeat periods.
  static let timeout: Nanoseconds = 30 * .second

  private let path: String
  private let call: [UInt8]
  private let timeout: Nanoseconds
  private var pause: ReadPause
  private let handle: (Event, Instant) -> Void
  private var delay = RetryDelay()
  private var sequence: Int?
  /// When the daemon counts as dead or, without a connection, when the next attempt is made.
  private var deadline: Instant
  /// When the last reply was received or the connection was opened, by the boot clock, which counts suspended time.
  private var heardAt: Instant = 0
  /// When the pause after the last read ends.
  private var resume: Instant?

  /// Watches these references, or everything, on the socket at `path`. `handle` receives each event with the time of its turn of the
  /// loop. `minimumInterval` is in milliseconds. `pause` is the time to wait after each read; it
  /// becomes shorter if much arrives.
  public convenience init(
    socket path: String, references: [String]? = nil, minimumInterval: Int? = nil, pause: Nanoseconds = 0, loop: EventLoop,
    handle: @escaping (Event, Instant) -> Void
  ) {
    self.init(socket: path, references, minimumInterval, pause: pause, timeout: Self.timeout, loop: loop, handle: handle)
  }

  init(
    socket path: String, _ references: [String]?, _ minimumInterval: Int?, pause: Nanoseconds = 0, timeout: Nanoseconds, loop: EventLoop,
    handle: @escaping (Event, Instant) -> Void
  ) {
    self.path = path
    self.timeout = timeout
    self.pause = ReadPause(longest: pause)
    self.handle = handle
    deadline = SystemClock.monotonic
    let parameters = Contract.Watch.Parameters(references: references, minimumIntervalMilliseconds: minimumInterval)
    do { call = try VarlinkCall.message(Contract.Watch.self, parameters, more: true) } catch {
      preconditionFailure("strings and integers can be encoded: \(error)")
    }
    super.init()
    wake = deadline
    loop.add(self)
  }

  /// Without interest, the loop still reports the end of the connection.
  public override var interest: Int16 { resume == nil ? super.interest : 0 }

  public override func timerFired(at now: Instant) {
    defer { wake = min(deadline, resume ?? .max) }
    guard !isConnected else { return now < deadline ? read(at: now) : endSilence(at: now) }
    do throws(DaemonFailure) {
      try connect(to: path, call: call)
      sequence = nil
      postponeDeadline(at: now)
    } catch {
      disconnect(error, at: now)
    }
  }

  public override func ready(_ events: Int16, at now: Instant) {
    read(at: now)
    wake = min(deadline, resume ?? .max)
  }

  private func postponeDeadline(at now: Instant) { (deadline, heardAt) = (now + timeout, SystemClock.boot) }

  private func endSilence(at now: Instant) {
    disconnect(.unavailable("no reply from vehicled for \(timeout / .second) s; see \"systemctl status vehicled\""), at: now)
  }

  private func read(at now: Instant) {
    guard SystemClock.boot - heardAt < timeout else { return endSilence(at: now) }
    resume = nil
    let isDrained = !exchange()
    let length = pause.next(isDrained: isDrained)
    do throws(DaemonFailure) {
      while let reply = try nextReply() {
        try deliver(reply, at: now)
        if isDrained, length > 0 { resume = now + length }
      }
    } catch {
      disconnect(error, at: now)
    }
  }

  private func deliver(_ reply: VarlinkReply, at now: Instant) throws(DaemonFailure) {
    guard reply.continues else { throw .unavailable("vehicled has ended the watch") }
    let result: Contract.Watch.Result
    do { result = try reply.parameters(as: Contract.Watch.Result.self) } catch { throw .unavailable("\(error)") }
    // Both are at least 0, so the difference cannot overflow.
    let missing = result.sequence < 0 ? -1 : sequence.map { result.sequence - $0 - 1 } ?? 0
    guard missing >= 0 else {
      throw .unavailable("invalid reply from vehicled: sequence \(result.sequence)\(sequence.map { " after \($0)" } ?? "")")
    }
    sequence = result.sequence
    delay.reset()
    postponeDeadline(at: now)
    if missing > 0 { handle(.gap(missing: missing), now) }
    if isConnected { handle(.result(result), now) }
  }

  private func disconnect(_ failure: DaemonFailure, at now: Instant) {
    disconnect()
    let retry = now + delay.next()
    (deadline, resume) = (retry, nil)
    handle(.disconnected(failure, retry: retry), now)
  }
}

/// The pause between two reads. It becomes shorter if more arrives during it than one read takes: the daemon merges the values for a reader
/// that is too slow.
struct ReadPause {
  private let longest: Nanoseconds
  private var current: Nanoseconds

  init(longest: Nanoseconds) { (self.longest, current) = (longest, longest) }

  /// Returns the pause after a read. `isDrained` is whether the read has taken everything.
  mutating func next(isDrained: Bool) -> Nanoseconds {
    current = isDrained ? min(longest, current + current / 16) : max(current / 2, longest / 64)
    return current
  }
}

/// The delay before the next connection: 250 ms, doubled after each failure up to a maximum.
public struct RetryDelay {
  private static let first: Nanoseconds = 250 * .millisecond
  private let max: Nanoseconds
  private var delay = RetryDelay.first

  public init(max: Nanoseconds = 10 * .second) { self.max = max }

  public mutating func next() -> Nanoseconds {
    defer { delay = min(delay * 2, max) }
    return delay
  }

  public mutating func reset() { delay = Self.first }
}
