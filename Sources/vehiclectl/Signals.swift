// POSIX signals that vehiclectl handles. A handler only sets a flag; commands check it when their wait is interrupted.

import Glibc
import Synchronization

/// SIGINT, SIGTERM and SIGHUP as a flag, for commands that run until interrupted.
enum Interrupt {
  private static let flag = Atomic<Bool>(false)

  static var received: Bool { flag.load(ordering: .relaxed) }

  static func catchSignals() {
    _ = received  // initialises the flag outside the handler
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in Interrupt.flag.store(true, ordering: .relaxed) }
    var mask = sigset_t()
    sigemptyset(&mask)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      sigaction(number, &action, nil)  // no SA_RESTART: poll returns
      sigaddset(&mask, number)
    }
    sigprocmask(SIG_UNBLOCK, &mask, nil)  // the parent process may have blocked them
  }
}

/// SIGTSTP, SIGCONT and SIGQUIT, for commands that change the terminal. They restore the terminal before the signal takes effect.
enum JobControl {
  /// One bit per received signal.
  private static let pending = Atomic<UInt64>(0)

  static func catchSignals() {
    _ = pending.load(ordering: .relaxed)  // initialises the bits outside the handler
    for number in [SIGTSTP, SIGCONT, SIGQUIT] {
      var before = sigaction()
      sigaction(number, nil, &before)
      let isIgnored = unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
      if !isIgnored { handle(number) }  // a signal that the parent process ignores stays ignored
    }
  }

  /// Whether a signal that suspends or ends the process is pending.
  static var isPending: Bool { pending.load(ordering: .relaxed) & (bit(SIGTSTP) | bit(SIGQUIT)) != 0 }

  /// Whether the process was resumed after SIGSTOP, which cannot be caught. Clears that state.
  static func wasResumed() -> Bool { pending.bitwiseAnd(~bit(SIGCONT), ordering: .relaxed).oldValue & bit(SIGCONT) != 0 }

  /// Raises the pending signals with their default action, after `restore` has restored the terminal.
  static func handlePending(restore: () -> Void) {
    let signals = pending.exchange(0, ordering: .relaxed)
    guard signals != 0 else { return }
    restore()
    for number in [SIGQUIT, SIGTSTP] where signals & bit(number) != 0 {
      signal(number, SIG_DFL)
      raise(number)  // ends the process, or returns after SIGCONT
      handle(number)
      pending.bitwiseAnd(~bit(SIGCONT), ordering: .relaxed)  // already handled: the terminal was restored before the stop
    }
  }

  private static func bit(_ number: Int32) -> UInt64 { 1 << UInt64(number) }

  private static func handle(_ number: Int32) {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { JobControl.pending.bitwiseOr(JobControl.bit($0), ordering: .relaxed) }
    sigaction(number, &action, nil)  // no SA_RESTART: poll returns
    var mask = sigset_t()
    sigemptyset(&mask)
    sigaddset(&mask, number)
    sigprocmask(SIG_UNBLOCK, &mask, nil)
  }
}

/// SIGWINCH, which only has to interrupt a wait: the size of the window is read for each frame.
enum WindowChange {
  static func catchSignal() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigaction(SIGWINCH, &action, nil)  // no SA_RESTART: poll returns
  }
}
