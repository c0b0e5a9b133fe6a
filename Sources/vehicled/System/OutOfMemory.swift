// Which of two processes the kernel kills first when memory runs out: the daemon, never its guardian before it.
// Facts: proc(5), /proc/pid/oom_score_adj. A process may raise its own, and lower it to where a privileged one has put it.

import Glibc

enum OutOfMemory {
  /// Thousandths of the machine's memory: small, for the daemon is not to be killed before other programs either.
  private static let difference = 10
  private static let file = "/proc/self/oom_score_adj"
  @Loop private static var isExposed = false

  /// What the kernel adds to the score of this process.
  static var adjustment: Int? {
    guard let bytes = try? Files.contents(of: file, limit: 16) else { return nil }
    return Int(String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self))
  }

  /// Has the daemon killed before its guardian, which is about to start and inherits the same.
  @Loop static func exposeDaemon() {
    guard !isExposed else { return }
    isExposed = true
    adjust(by: difference)
  }

  /// The guardian's part.
  static func protectGuardian() { adjust(by: -difference) }

  private static func adjust(by change: Int) {
    guard let adjustment else { return }
    let text = Array(String(min(max(adjustment + change, -1000), 1000)).utf8)
    let descriptor = open(file, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = write(descriptor, text, text.count)
    close(descriptor)
  }
}
