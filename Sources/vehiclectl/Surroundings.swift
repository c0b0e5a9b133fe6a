// What vehiclectl takes from the system around it: clocks, environment, descriptors, the terminal, and signals.

import CLinux
import Glibc
import Synchronization

enum Clock {
  /// Seconds on a clock that never goes back and counts time asleep.
  static var monotonic: Double { seconds(CLOCK_BOOTTIME) }
  /// Seconds since the Unix epoch.
  static var wall: Double { seconds(CLOCK_REALTIME) }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

enum Environment {
  /// A variable that is set and not empty.
  static subscript(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}

enum Descriptors {
  /// Fills those of stdin, stdout and stderr that are closed: else the socket would get the number, and the daemon what is
  /// meant for a person. They are opened the wrong way round, so that using them fails as it does when they are closed.
  static func fillStandard() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(descriptor, F_GETFD) < 0 {
      _ = open("/dev/null", mode)  // takes the lowest number that is free: this one
    }
  }
}

enum Terminal {
  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// Columns and rows of the window; a terminal that does not know is taken to be 80 by 24.
  static var window: (columns: Int, rows: Int) {
    var columns: UInt32 = 0
    var rows: UInt32 = 0
    guard clinux_window(STDOUT_FILENO, &columns, &rows) == 0, columns > 0, rows > 0 else { return (80, 24) }
    return (Int(columns), Int(rows))
  }

  /// Reads a line from stdin; on a terminal the prompt is shown and the typing is not.
  static func secret(_ prompt: String) -> String? {
    guard isTerminal(STDIN_FILENO) else { return readLine() }
    var before = termios()
    guard tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO)
    Output.write(prompt, to: STDERR_FILENO)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
    defer {
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
      Output.write("\n", to: STDERR_FILENO)
    }
    return readLine()
  }
}

/// SIGINT, SIGTERM and SIGHUP as a flag, for verbs that last until somebody stops them.
enum Interrupt {
  private static let flag = Atomic<Bool>(false)

  static var came: Bool { flag.load(ordering: .relaxed) }

  static func catchSignals() {
    _ = came  // the flag is made here, not inside the handler
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in Interrupt.flag.store(true, ordering: .relaxed) }
    var mask = sigset_t()
    sigemptyset(&mask)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      sigaction(number, &action, nil)  // no SA_RESTART: poll returns
      sigaddset(&mask, number)
    }
    sigprocmask(SIG_UNBLOCK, &mask, nil)  // whoever started us may have blocked them
  }
}

/// SIGTSTP, SIGCONT and SIGQUIT, for verbs that change the terminal: it is put right before the signal does its work.
enum JobControl {
  /// A bit for each signal that came.
  private static let came = Atomic<UInt64>(0)

  static func catchSignals() {
    _ = came.load(ordering: .relaxed)  // it is made here, not inside the handler
    for number in [SIGTSTP, SIGCONT, SIGQUIT] {
      var before = sigaction()
      sigaction(number, nil, &before)
      let isIgnored = unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
      if !isIgnored { handle(number) }  // who had us started without it means it
    }
  }

  /// Does what the signals since the last look wanted. `restore` puts the terminal right, before a stop and after one.
  static func obey(restore: () -> Void) {
    let signals = came.exchange(0, ordering: .relaxed)
    guard signals != 0 else { return }
    restore()
    for number in [SIGQUIT, SIGTSTP] where signals & bit(number) != 0 {
      signal(number, SIG_DFL)
      raise(number)  // ends here, or goes on after SIGCONT
      handle(number)
      came.bitwiseAnd(~bit(SIGCONT), ordering: .relaxed)  // nothing was drawn since
    }
  }

  private static func bit(_ number: Int32) -> UInt64 { 1 << UInt64(number) }

  private static func handle(_ number: Int32) {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { JobControl.came.bitwiseOr(JobControl.bit($0), ordering: .relaxed) }
    sigaction(number, &action, nil)  // no SA_RESTART: poll returns
    var mask = sigset_t()
    sigemptyset(&mask)
    sigaddset(&mask, number)
    sigprocmask(SIG_UNBLOCK, &mask, nil)
  }
}
