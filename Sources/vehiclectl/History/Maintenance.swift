// Calls to the history service that can take minutes, because the service processes its stored values.

import Protocols
import Varlink

extension Client {
  /// Calls a method that reports its progress, which is shown as `name: 42 %`. Returns the last reply. Ctrl-C ends the wait.
  func callShowingProgress<M: VarlinkMethod>(
    _ method: M.Type, _ parameters: M.Parameters, _ name: String, _ common: CommonOptions, _ output: Output, progress: (M.Result) -> Double?
  ) throws -> M.Result {
    Interrupt.catchSignals()
    var last: M.Result?
    defer { output.progress(nil) }
    // No default timeout: the service may reply only when it has finished.
    try stream(method, parameters, firstReply: common.timeout, tick: 0.2, laterReplies: nil) { result in
      if Interrupt.received { throw Failure.other("interrupted; vehicled-history may continue in the background") }
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
  /// The timeout in seconds of methods that rewrite files and do not report progress.
  private static let longCallTimeout = 600.0

  /// Opens the socket for calls that can take minutes.
  func connectForLongCalls(_ common: CommonOptions, _ output: Output) throws(Failure) -> Client {
    try Client(
      path: socketPath, timeout: common.timeout ?? Self.longCallTimeout, service: .history,
      trace: common.verbose ? { output.trace($0, $1) } : nil)
  }
}

extension Output {
  /// Prints a note for each damaged block that was skipped.
  func noteDamage(_ descriptions: [String]) {
    for text in descriptions { note("skipped a damaged block: \(Output.oneLine(text))") }
  }
}
