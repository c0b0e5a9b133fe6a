// Follows the connection of a device until its first values, for `setup` and `connect`. Prints each step, then the values, or the reason
// why there are none.

import Glibc
import Protocols
import Varlink

struct ConnectionFollower {
  let device: String
  let common: CommonOptions
  let output: Output

  /// Seconds to wait for the links and the first value, unless --timeout is given.
  private static let defaultLimit = 60.0
  /// The interval of Watch in ms.
  private static let interval = 100

  /// Prints steps until the device has values. Throws if the device is not connected within the limit, or has a fault instead of values.
  func run() throws {
    let (client, units, limit) = (try common.connect(output), try common.unitSystem(), common.timeout ?? Self.defaultLimit)
    guard let schema = try client.call(Contract.Describe.self, .init(device: device)).schemas.first else {
      throw Failure.rejected(.noSuchDevice(device: device))
    }
    Interrupt.catchSignals()
    let began = Clock.monotonic
    var steps = ConnectionSteps(schema, at: began)
    var outcome = ConnectionSteps.Outcome.waiting
    defer { output.progress(nil) }
    let parameters = Contract.Watch.Parameters(minimumIntervalMilliseconds: Self.interval)
    try client.stream(Contract.Watch.self, parameters, firstReply: limit, tick: 0.25, laterReplies: Client.watchTimeout) { result in
      let now = Clock.monotonic
      if let result { show(steps.apply(units.converted(result), at: now)) }
      outcome = steps.outcome(at: now)
      if Interrupt.received { return false }
      let seconds = "\(Int(now - began)) s"
      output.progress("  \(seconds): \(steps.obstacle(wall: Clock.wall) ?? "waiting for values, \(steps.state?.state ?? "")")")
      return outcome == .waiting && now - began < limit
    }
    output.progress(nil)
    switch outcome {
    case .hasValues:
      show(steps.finish())
      show(values: steps.firstValues)
    case .removed: throw Failure.rejected(.noSuchDevice(device: device))
    case .waiting where Interrupt.received: throw Failure.other("interrupted; vehicled keeps trying: vehiclectl status \(device)")
    case .idle, .waiting: try explain(steps)
    }
  }

  private func show(_ lines: [String]) {
    guard !lines.isEmpty else { return }
    output.progress(nil)
    output.lines(lines.map { output.fit("  " + Output.oneLine($0)) })
  }

  private func show(values: [Contract.Reading]) {
    var table = Table("", ">", "")
    for reading in values {
      table.rows.append([Cell(reading.property), Cell(reading.value.map(Format.text) ?? "-"), Cell(reading.unit ?? "")])
    }
    output.lines(table.lines(indent: 4, paint: output.paint))
  }

  /// Reports why there are no values. Throws if a link is not up or the device has a fault; otherwise prints a note.
  private func explain(_ steps: ConnectionSteps) throws(Failure) {
    let obstacle = steps.obstacle(wall: Clock.wall)
    guard let cause = obstacle ?? steps.state?.fault else {
      let state = steps.state.map { ": \($0.state)" } ?? ""
      return output.note("\(device) is connected, but has no values yet\(state); see: vehiclectl status \(device)")
    }
    let remedy = remedy.map { "; \($0)" } ?? ""
    let what = obstacle == nil ? "is connected, but has no values" : "is not connected"
    let next = "vehicled keeps trying: vehiclectl status \(device)"
    throw .noValue("\(device) \(what): \(cause)\(remedy); \(next)", notConnected: obstacle != nil)
  }

  /// The remedy that the daemon suggests for this device.
  private var remedy: String? {
    // On another connection, because this command's first one is still streaming.
    let findings = try? common.connect(output).call(Contract.Diagnose.self, NoParameters()).findings
    return findings?.first { $0.state != "ok" && $0.remedy != nil && ($0.subject == device || $0.subject.hasPrefix(device + " ")) }?.remedy
  }
}
