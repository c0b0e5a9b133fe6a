// Runs a program in the foreground with given input, for `setup`: the daemon's check of a configuration, and sudo.

import Glibc

enum ChildProcess {
  /// Runs a program to its end. Returns its exit status, or 128 plus the number of the signal that ended it, or nil if it cannot be
  /// started. With `capturesErrors`, also returns its stderr, and discards its stdout; otherwise it inherits both.
  static func run(_ arguments: [String], input: String? = nil, capturesErrors: Bool = false) -> (status: Int32, errors: String)? {
    guard let source = pipe(), let errors = pipe() else { return nil }
    let isWritten = (input?.utf8.count ?? 0) < maxInput && Output.write(all: Array((input ?? "").utf8)[...], to: source.write)
    close(source.write)
    defer { for descriptor in [source.read, errors.read] { close(descriptor) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, source.read, STDIN_FILENO)
    if capturesErrors {
      posix_spawn_file_actions_adddup2(&actions, errors.write, STDERR_FILENO)
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    }
    var child = pid_t()
    let words = arguments.map { strdup($0) } + [nil]
    defer { words.forEach { free($0) } }
    let isStarted = isWritten && posix_spawnp(&child, arguments[0], &actions, nil, words, environ) == 0
    close(errors.write)
    guard isStarted else { return nil }
    let text = capturesErrors ? contents(of: errors.read) : ""
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    return (status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F, text)
  }

  /// The maximum size of the input in bytes. It is written before the program starts, so it must fit into a pipe.
  private static let maxInput = 1 << 15

  private static func pipe() -> (read: Int32, write: Int32)? {
    var ends: [Int32] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  private static func contents(of descriptor: Int32) -> String {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }

  /// The path of this program; nil if the kernel does not report it.
  static var ownPath: String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0, count < buffer.count else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
