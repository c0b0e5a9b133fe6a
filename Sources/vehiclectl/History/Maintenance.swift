// What the commands share that wait for the history service to work through what it has stored.

import Protocols
import Varlink

extension Client {
  /// Calls a method that reports its progress, and shows it as `name: 42 %`. Returns the last reply. Ctrl-C ends the wait.
  func following<M: VarlinkMethod>(
    _ method: M.Type, _ parameters: M.Parameters, _ name: String, _ common: CommonOptions, _ output: Output, progress: (M.Result) -> Double?
  ) throws -> M.Result {
    Interrupt.catchSignals()
    var last: M.Result?
    defer { output.progress(nil) }
    // The first reply can take as long as the work, unless --timeout says otherwise.
    try stream(method, parameters, firstReply: common.timeout, tick: 0.2, laterReplies: nil) { result in
      if Interrupt.received { throw Failure.other("interrupted; vehicled-history may go on with it") }
      guard let result else { return true }
      last = result
      if let fraction = progress(result) { output.progress("\(name): \(Int(fraction * 100)) %") }
      return true
    }
    guard let last else { throw Failure.daemonGone("vehicled-history sent no reply", .history) }
    return last
  }
}

extension HistoryOptions {
  /// The seconds to wait for a method without progress that rewrites files.
  private static let workTimeout = 600.0

  /// Opens the socket for a call that can take minutes.
  func connectForWork(_ common: CommonOptions, _ output: Output) throws(Failure) -> Client {
    try Client(
      path: socketPath, timeout: common.timeout ?? Self.workTimeout, service: .history,
      trace: common.verbose ? { output.trace($0, $1) } : nil)
  }
}

extension Output {
  /// Prints descriptions of damaged blocks as notes.
  func damage(_ damage: [String]) {
    for text in damage { note("skipped a damaged block: \(Output.oneLine(text))") }
  }
}
