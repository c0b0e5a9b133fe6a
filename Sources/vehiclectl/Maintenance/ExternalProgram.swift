// Runs programs such as systemctl and journalctl: without input, with a minimal environment, a timeout and a limit on the output.

import Glibc

enum ExternalProgram {
  private static let variables = ["PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"]

  /// Returns the last `bytes` bytes of stdout; nil if the program is missing, fails or exceeds the timeout.
  static func output(_ arguments: [String], within seconds: Double = 5, keeping bytes: Int = 1 << 20) -> String? {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    let words = arguments.map { strdup($0) } + [nil]
    let environment = variables.map { strdup($0) } + [nil]
    defer { (words + environment).forEach { free($0) } }
    var child = pid_t()
    let failure = posix_spawnp(&child, arguments[0], &actions, nil, words, environment)
    close(ends[1])
    guard failure == 0 else { return nil }
    var printed: [UInt8] = []
    let isWhole = read(ends[0], into: &printed, until: Clock.monotonic + seconds, keeping: bytes)
    if !isWhole { kill(child, SIGKILL) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    return isWhole && status == 0 ? String(decoding: printed.suffix(bytes), as: UTF8.self) : nil
  }

  /// Reads to the end; returns false at the deadline.
  private static func read(_ descriptor: Int32, into printed: inout [UInt8], until deadline: Double, keeping bytes: Int) -> Bool {
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let milliseconds = Int32(max(0, (deadline - Clock.monotonic) * 1000))
      guard milliseconds > 0 else { return false }
      guard poll(&entry, 1, milliseconds) > 0 else { continue }
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count == 0 { return true }
      guard count > 0 else { return false }
      printed += chunk[..<count]
      if printed.count > 4 * bytes { printed.removeFirst(printed.count - bytes) }
    }
  }
}
