// The call that provisions the toy, from its beginning to what came of it, with the toy's own network borrowed meanwhile where
// that was asked for. Whatever ends it, the network that was there before is restored, and the daemon stops listening because
// the connection closes.

import Glibc
import Protocols

struct WiFiProvisioning {
  let toy: Toy
  let output: Output
  /// Seconds for all of it, where somebody set some.
  let limit: Double?
  /// What a person is to do, once the daemon waits for the toy.
  var steps: [String] = []

  /// Runs it, and gives the last words of the daemon.
  func run(_ parameters: Contract.Call.Parameters, joining network: TemporaryNetwork?) throws -> Contract.Call.Result? {
    var network = network
    defer {
      output.progress(nil)
      if network?.needsRestore == true { output.progress("going back to the network that was there before") }
      let words = network?.restore()
      output.progress(nil)
      if let words { output.note(words) }
    }
    let start = Clock.monotonic
    var last: Contract.Call.Result?
    var said = ""
    try toy.client.stream(Contract.Call.self, parameters, first: nil, tick: 0.25, silence: nil) { result in
      if Interrupt.received {
        let isTold = last?.text?.hasPrefix(ToyWiFi.sendingReport) == true
        throw Failure.other(
          isTold ? "interrupted, but the toy had been told its network: look at its light, then switch it off and on" : "interrupted")
      }
      if let limit, Clock.monotonic - start >= limit { throw Failure.timeout(seconds: limit) }
      if let result {
        if last == nil, !output.json, (result.progress ?? 1) < 1 { steps.forEach(output.note) }
        last = result
        if output.json { output.json(JSON(result)) }
      }
      // The daemon listens, or has refused, before this computer leaves its network.
      let waits = last == nil ? nil : try network?.advance(at: Clock.monotonic)
      if !output.json { show(waits, last, &said) }
      return true
    }
    return last
  }

  /// On a terminal a line that moves; elsewhere a line for what is new, without numbers that run.
  private func show(_ waits: String?, _ last: Contract.Call.Result?, _ said: inout String) {
    if Terminal.isTerminal(STDERR_FILENO) { return output.progress(waits ?? last.map(Self.words) ?? "") }
    guard let words = waits ?? last?.text, words != said else { return }
    said = words
    output.note(Output.oneLine(words))
  }

  /// How far it is.
  static func words(_ result: Contract.Call.Result) -> String {
    let share = result.progress.map { "\(Int(max(0, min(1, $0)) * 100)) %" }
    return Output.oneLine([share, result.text].compactMap { $0 }.joined(separator: "  "))
  }
}
