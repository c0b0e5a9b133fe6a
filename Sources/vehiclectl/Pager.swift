// Shows output that is longer than the terminal in a pager, as systemctl does.

import CLinux
import Glibc

enum Pager {
  /// The environment variables that name the pager; the first one that is set is used. An empty value or "cat" means no pager.
  static let variables = ["VEHICLECTL_PAGER", "PAGER"]
  private static let programs = ["pager", "less", "more"]

  /// Prints the lines, in a pager if stdout is a terminal on which they do not fit.
  static func show(_ lines: [String], _ output: Output) {
    let isAtTerminal = Terminal.isTerminal(STDOUT_FILENO) && Terminal.isTerminal(STDIN_FILENO) && Environment["TERM"] != "dumb"
    guard isAtTerminal, !fits(lines, Terminal.window) else { return output.lines(lines) }
    let text = Array(lines.map { $0 + "\n" }.joined().utf8)
    for command in commands({ getenv($0).map { String(cString: $0) } }) where run(command, input: text) { return }
    output.lines(lines)
  }

  /// Whether the lines, as wrapped by the terminal, and the prompt after them fit in the window.
  static func fits(_ lines: [String], _ window: (columns: Int, rows: Int)) -> Bool {
    let rows = lines.reduce(0) { $0 + max(1, ($1.visibleWidth + window.columns - 1) / window.columns) }
    return rows < window.rows
  }

  /// The commands to try, in order.
  static func commands(_ environment: (String) -> String?) -> [[String]] {
    guard let chosen = variables.lazy.compactMap(environment).first else { return programs.map { [$0] } }
    let words = chosen.split(separator: " ").map(String.init)
    return words.isEmpty || words == ["cat"] ? [] : [words]
  }

  /// The options of less: quit if the text fits, show colours, leave the text on the screen, quit on Ctrl-C. The user's own options follow.
  static func lessOptions(_ own: String?) -> String { "-FRXK" + (own.map { $0.hasPrefix("-") ? " \($0)" : " -\($0)" } ?? "") }

  /// Runs a pager until it exits. Returns false if it cannot be started.
  private static func run(_ command: [String], input: [UInt8]) -> Bool {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return false }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGPIPE, SIGINT, SIGQUIT] { sigaddset(&signals, number) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
    setenv("LESS", lessOptions(Environment["LESS"]), 1)
    setenv("LESSCHARSET", "utf-8", 0)
    // Ctrl-C must reach only the pager.
    let handlers = [SIGINT, SIGQUIT].map { ($0, signal($0, SIG_IGN)) }
    defer { for (number, handler) in handlers { signal(number, handler) } }
    let words = command.map { strdup($0) } + [nil]
    defer { words.forEach { free($0) } }
    var child = pid_t()
    let isStarted = posix_spawnp(&child, command[0], &actions, &attributes, words, environ) == 0
    close(ends[0])
    // The pager can exit before it has read everything, so the result does not matter.
    if isStarted { _ = Output.write(all: input[...], to: ends[1]) }
    close(ends[1])
    guard isStarted else { return false }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    return true
  }
}
