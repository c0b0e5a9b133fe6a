// The pending commands of one device. Each completes exactly once, unless its caller disconnects first. A command without
// progress for 10 s times out.

import Protocols

@Loop final class PendingCommands {
  private struct Pending {
    let deadline: Timer
    let progress: @Loop (Report) -> Void
    let finish: @Loop (Result<Report, CommandError>) -> Void
  }

  private var pending: [CommandID: Pending] = [:]
  private var last: CommandID = 0
  private static let timeout: Nanoseconds = 10 * .second

  var ids: [CommandID] { pending.keys.sorted() }

  /// Registers a command and returns its ID. At the timeout `finish` is called, then `expired`.
  func begin(
    progress: @escaping @Loop (Report) -> Void, finish: @escaping @Loop (Result<Report, CommandError>) -> Void,
    expired: @escaping @Loop (CommandID) -> Void
  ) -> CommandID {
    last &+= 1
    let id = last
    let deadline = Timer { [weak self] _ in
      self?.complete(id, .failure(.timeout(milliseconds: Int(Self.timeout / .millisecond))))
      expired(id)
    }
    pending[id] = Pending(deadline: deadline, progress: progress, finish: finish)
    restartDeadline(id)
    return id
  }

  /// Reports progress, which restarts the timeout.
  func report(_ id: CommandID, _ report: Report) {
    restartDeadline(id)
    pending[id]?.progress(report)
  }

  func complete(_ id: CommandID, _ result: Result<Report, CommandError>) {
    guard let command = pending.removeValue(forKey: id) else { return }
    command.deadline.set(nil)
    command.finish(result)
  }

  /// Discards a command because its caller disconnected. Returns false if it has already completed.
  func drop(_ id: CommandID) -> Bool {
    guard let command = pending.removeValue(forKey: id) else { return false }
    command.deadline.set(nil)
    return true
  }

  private func restartDeadline(_ id: CommandID) { pending[id]?.deadline.set(Clock.monotonic() + Self.timeout) }
}
