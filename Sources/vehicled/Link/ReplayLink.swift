// Replays a recording as if it were the peer: when the daemon sends a recorded message, the recorded replies follow after their
// original delays, divided by `speed`. A message that is not in the rest of the recording gets no reply. For a device that only receives,
// the recorded messages follow each other.

import Protocols
import ServiceRuntime
import Varlink

@Loop final class ReplayLink: Link {
  private weak var owner: (any LinkOwner)?
  private let speed: Double
  /// How long after the end of the recording the link still accepts messages without a recorded reply.
  private let grace: Nanoseconds
  /// Whether the daemon only receives, so that sent messages are omitted.
  private let onlyReceives: Bool
  /// The rest of the recording. `t` is the recorded time in ns.
  private var lines: ArraySlice<(t: Int64, direction: Recording.Direction, bytes: [UInt8])> = []
  /// The monotonic time that corresponds to time 0 of the recording.
  private var offset: Int64 = 0
  private lazy var timer = Timer { [weak self] now in self?.play(now) }
  /// The maximum size of a recording, in bytes. Larger than the files that `record = true` writes.
  private nonisolated static let maxFileSize = 96 << 20

  /// Starts reading a recording. The default of `grace` is longer than any timeout of a protocol state machine.
  init(
    path: String, speed: Double, disk: Disk, grace: Nanoseconds = 15 * .second, onlyReceives: Bool = false, owner: any LinkOwner
  ) {
    (self.speed, self.grace, self.onlyReceives, self.owner) = (speed, grace, onlyReceives, owner)
    disk.read { () throws(ValueError) in
      try Recording(parsing: Files.read(path, limit: Self.maxFileSize))
    } then: { [weak self] result in
      switch result {
      case .success(let recording): self?.begin(recording)
      case .failure(let error): self?.end("cannot replay \(path): \(error)")
      }
    }
  }

  func send(_ bytes: [UInt8], id: SendID?) {
    if let id { Loop.post { [weak self] in self?.owner?.linkSent(id, failure: nil) } }
    guard let index = lines.firstIndex(where: { $0.direction == .sent && $0.bytes == bytes }) else {
      // Recorded messages that the device never sends again must not keep the link up forever.
      let isOver = Clock.monotonic() > offset + scaled(lines.last?.t ?? 0) + grace
      if isOver || !lines.contains(where: { $0.direction == .sent }) { end("the recording has ended") }
      return
    }
    offset = Clock.monotonic() - scaled(lines[index].t)
    lines = lines[(index + 1)...]
    schedule()
  }

  func close() {
    owner = nil
    timer.set(nil)
  }

  private func begin(_ recording: Recording) {
    guard let owner else { return }
    lines =
      recording.lines.compactMap { line in
        onlyReceives && line.dir == .sent ? nil : recording.replayBytes(of: line).map { (line.t, line.dir, $0) }
      }[...]
    // The first recorded time may be greater than 0.
    offset = Clock.monotonic() - scaled(lines.first?.t ?? 0)
    owner.linkCameUp(maximumSend: nil)
    schedule()
  }

  private func schedule() {
    guard let next = lines.first, next.direction == .received else { return timer.set(nil) }
    timer.set(offset + scaled(next.t))
  }

  private func play(_ now: Instant) {
    while let next = lines.first, next.direction == .received, offset + scaled(next.t) <= now {
      lines.removeFirst()
      owner?.linkReceived(next.bytes)
    }
    if onlyReceives, lines.isEmpty { return end("the recording has ended") }
    schedule()
  }

  private func end(_ reason: String) {
    let owner = owner
    close()
    owner?.linkWentDown(reason, final: true)
  }

  /// A recorded time, divided by `speed`.
  private func scaled(_ t: Int64) -> Int64 {
    // Limited to a year, which is longer than any recording and cannot overflow.
    Int64(min(max(Double(t) / speed, 0), 365 * 86_400e9))
  }
}
