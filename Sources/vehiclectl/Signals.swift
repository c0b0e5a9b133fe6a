// The signals that vehiclectl does not leave to the system. A handler sets a flag and nothing else; the verb looks at it when
// its wait is interrupted.

import Glibc
import Synchronization

/// SIGINT, SIGTERM and SIGHUP as a flag, for verbs that last until somebody stops them.
enum Interrupt {
  private static let flag = Atomic<Bool>(false)

  static var received: Bool { flag.load(ordering: .relaxed) }

  static func catchSignals() {
    _ = received  // the flag is made here, not inside the handler
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
  private static let pending = Atomic<UInt64>(0)

  static func catchSignals() {
    _ = pending.load(ordering: .relaxed)  // it is made here, not inside the handler
    for number in [SIGTSTP, SIGCONT, SIGQUIT] {
      var before = sigaction()
      sigaction(number, nil, &before)
      let isIgnored = unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
      if !isIgnored { handle(number) }  // who had us started without it means it
    }
  }

  /// Whether one came that will stop or end us, for verbs that have something to do before.
  static var isPending: Bool { pending.load(ordering: .relaxed) & (bit(SIGTSTP) | bit(SIGQUIT)) != 0 }

  /// Whether we were stopped by something that cannot be caught, and go on since.
  static func wasResumed() -> Bool { pending.bitwiseAnd(~bit(SIGCONT), ordering: .relaxed).oldValue & bit(SIGCONT) != 0 }

  /// Does what the signals since the last look wanted. `restore` puts the terminal right, before a stop and after one.
  static func handlePending(restore: () -> Void) {
    let signals = pending.exchange(0, ordering: .relaxed)
    guard signals != 0 else { return }
    restore()
    for number in [SIGQUIT, SIGTSTP] where signals & bit(number) != 0 {
      signal(number, SIG_DFL)
      raise(number)  // ends here, or goes on after SIGCONT
      handle(number)
      pending.bitwiseAnd(~bit(SIGCONT), ordering: .relaxed)  // nothing was drawn since
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
