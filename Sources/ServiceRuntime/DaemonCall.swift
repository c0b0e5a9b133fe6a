// One call to the daemon with one reply, on a connection of its own: a connection that watches can make no other call.

import CLinux
import Glibc
import Protocols
import Varlink

public final class DaemonCall<M: VarlinkMethod>: DaemonSource {
  /// The time after which the call fails.
  private static var timeout: Nanoseconds { 10 * .second }

  private var failure: DaemonFailure?
  private let finish: (Result<M.Result, DaemonFailure>) -> Void

  /// Calls the method. `finish` receives the result or the failure in a later turn of the loop.
  @discardableResult
  public init(
    socket path: String, _ method: M.Type, _ parameters: M.Parameters, loop: EventLoop,
    finish: @escaping (Result<M.Result, DaemonFailure>) -> Void
  ) {
    self.finish = finish
    super.init()
    wake = SystemClock.monotonic
    do throws(DaemonFailure) {
      try connect(to: path, call: Self.message(method, parameters))
      wake = SystemClock.monotonic + Self.timeout
    } catch {
      failure = error
    }
    loop.add(self)
  }

  private static func message(_ method: M.Type, _ parameters: M.Parameters) throws(DaemonFailure) -> [UInt8] {
    do { return try VarlinkCall.message(method, parameters) } catch { throw .unavailable("cannot encode the call: \(error)") }
  }

  public override func timerFired(at now: Instant) {
    end(.failure(failure ?? .unavailable("no reply from vehicled for \(Self.timeout / .second) s; see \"systemctl status vehicled\"")))
  }

  public override func ready(_ events: Int16, at now: Instant) {
    exchange()
    do throws(DaemonFailure) {
      guard let reply = try nextReply() else { return }
      do { end(.success(try reply.parameters(as: M.Result.self))) } catch { throw .unavailable("\(error)") }
    } catch {
      end(.failure(error))
    }
  }

  private func end(_ result: Result<M.Result, DaemonFailure>) {
    guard !isClosed else { return }
    close()
    finish(result)
  }
}
