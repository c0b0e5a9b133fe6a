// OOM scores: when memory runs out, the kernel must kill the daemon before its guardian, which then stops the vehicles.
// Source: proc(5), /proc/pid/oom_score_adj. A process may raise its own value, and lower it to the value that a privileged process set.

import Glibc
import ServiceRuntime

enum OutOfMemory {
  /// The difference between the two scores in thousandths of the system's memory. Small, so that the kernel does not kill the daemon
  /// instead of a program that uses more memory.
  private static let difference = 10
  private static let file = "/proc/self/oom_score_adj"
  @Loop private static var isExposed = false

  /// The value that the kernel adds to the score of this process.
  static var adjustment: Int? {
    guard let bytes = try? Files.contents(of: file, limit: 16) else { return nil }
    return Int(String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self))
  }

  /// Raises the score of the daemon. The guardian inherits it and lowers its own.
  @Loop static func exposeDaemon() {
    guard !isExposed else { return }
    isExposed = true
    adjust(by: difference)
  }

  /// Lowers the score of the guardian.
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
