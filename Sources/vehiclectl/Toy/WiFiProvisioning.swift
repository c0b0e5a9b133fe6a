// Runs the action that sets up the toy's Wi-Fi, and meanwhile joins the toy's own network if requested. Always restores the previous
// network, even after Ctrl-C. The daemon stops listening for the toy when the connection closes.

import Glibc
import Protocols
import Varlink

struct WiFiProvisioning {
  let toy: Toy
  let output: Output
  /// The timeout of the whole setup in seconds, if any.
  let timeout: Double?
  /// Instructions that are shown once the daemon is waiting for the toy.
  var steps: [String] = []

  /// Runs the setup and returns the last reply.
  func run(_ parameters: Contract.Call.Parameters, joining network: TemporaryNetwork?) throws -> Contract.Call.Result? {
    var network = network
    defer {
      output.progress(nil)
      if network?.needsRestore == true { output.progress("reconnecting to the previous network") }
      let message = network?.restore()
      output.progress(nil)
      if let message { output.note(message) }
    }
    let start = Clock.monotonic
    var last: Contract.Call.Result?
    var lastText = ""
    try toy.client.stream(Contract.Call.self, parameters, firstReply: nil, tick: 0.25, laterReplies: nil) { result in
      if Interrupt.received {
        let isSent = last?.text?.hasPrefix(ToyWiFi.sendingReport) == true
        throw Failure.other(
          isSent ? "interrupted after the toy received its network settings; check its light, then switch it off and on" : "interrupted")
      }
      if let timeout, Clock.monotonic - start >= timeout { throw Failure.timeout(seconds: timeout) }
      if let result {
        if last == nil, !output.json, (result.progress ?? 1) < 1 { steps.forEach(output.note) }
        last = result
        if output.json { output.json(JSON(result)) }
      }
      // Change networks only after the first reply of the daemon, which means that it is listening for the toy.
      let waitReason = last == nil ? nil : try network?.advance(at: Clock.monotonic)
      if !output.json { show(waitReason, last, &lastText) }
      return true
    }
    return last
  }

  /// Shows progress in place on a terminal; otherwise prints each new text without percentages.
  private func show(_ waitReason: String?, _ last: Contract.Call.Result?, _ lastText: inout String) {
    if Terminal.isTerminal(STDERR_FILENO) { return output.progress(waitReason ?? last.map(Self.summary) ?? "") }
    guard let text = waitReason ?? last?.text, text != lastText else { return }
    lastText = text
    output.note(Output.oneLine(text))
  }

  /// The progress and text of a reply.
  static func summary(_ result: Contract.Call.Result) -> String {
    let percentage = result.progress.map { "\(Int(max(0, min(1, $0)) * 100)) %" }
    return Output.oneLine([percentage, result.text].compactMap { $0 }.joined(separator: "  "))
  }
}
