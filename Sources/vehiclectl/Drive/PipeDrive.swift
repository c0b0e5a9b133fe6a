// Drives a device with lines of JSON from another program. Never repeats a setpoint: without new lines, the deadline stops the vehicle.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct PipeDrive {
  private struct Line {
    var number: Int
    var request: DriveRequest
  }

  let common: CommonOptions
  let output: Output
  let schema: DriveSchema
  /// The deadline of the lease in ms.
  let deadline: Int
  private let input: Int32
  private var lines: LineReader
  /// The number of the last line read.
  private var number = 0
  /// The text of the last reply to a setpoint.
  private var remark: String?
  /// The error of the last setpoint, if any.
  private var lastError: String?
  /// The exit code of the last rejected line, which becomes the exit status of the drive.
  private var rejectedCode: Int32?
  /// The maximum number of lines to read at once.
  private static let maxLinesAtOnce = 4096

  init(_ common: CommonOptions, _ output: Output, _ schema: DriveSchema, deadline: Int, input: Int32 = STDIN_FILENO) {
    self.common = common
    self.output = output
    self.schema = schema
    self.deadline = deadline
    self.input = input
    lines = LineReader(input)
  }

  /// Drives until the end of the input or an interrupt, and waits for the replies to the actions.
  mutating func run(holder: Client) throws {
    let driver = try common.connect(output)
    var actions = ActionQueue(
      try common.connect(output), try common.connect(output), device: schema.device, timeout: common.replyTimeout)
    let (device, input) = (schema.device, input)
    var lease: String?
    // The lease lasts as long as this stream. Once the lease is granted, the stream also waits for input. At a tick, actions can time out.
    let parameters = Contract.Drive.Parameters(device: device, deadlineMilliseconds: deadline)
    do {
      try holder.stream(
        Contract.Drive.self, parameters, firstReply: common.replyTimeout, tick: 0.5, laterReplies: nil,
        watching: { lease == nil ? [] : [input] + actions.descriptors }
      ) { result in
        if Interrupt.received { return false }
        if let result {
          lease = result.lease
          output.note("driving \(device): send a line of JSON at least every \(deadline) ms; end with Ctrl-D")
        }
        guard let lease else { return true }
        while let answer = try actions.receive() {
          guard let error = show(answer) else { continue }
          // A timeout ends the drive with its own error, which does not mention that Stop is not confirmed.
          if case .timeout = error, answer.entry.isStop { output.note(message(for: error, of: answer.entry)) }
          try report(error, answer.entry.request, answer.entry.number, holder)
        }
        for line in try readRequests() { try perform(line, lease, driver, &actions, holder) }
        return !lines.hasEnded
      }
    } catch {
      note(dropped: actions.dropMotion())
      try? finish(&actions)
      throw error
    }
    if Interrupt.received { note(dropped: actions.dropMotion()) }
    try finish(&actions)
    if let rejectedCode { throw ExitCode(rejectedCode) }
  }

  /// Waits for the replies to all actions, so that a Stop that is not confirmed is reported.
  private mutating func finish(_ actions: inout ActionQueue) throws(Failure) {
    while let answer = try actions.waitForReply() {
      guard let error = show(answer) else { continue }
      output.note(message(for: error, of: answer.entry))
      rejectedCode = error.exitCode
    }
  }

  /// Shows the reply to an action, or returns its error.
  private mutating func show(_ answer: ActionQueue.Answer) -> Failure? {
    note(dropped: answer.dropped)
    switch answer.reply {
    case .success(let result):
      if !answer.entry.isRepeated { show(result, to: answer.entry.request) }
      return nil
    case .failure(let error): return error
    }
  }

  /// The message for an error of an action: after a Stop without a reply the vehicle may still be driving.
  func message(for failure: Failure, of entry: ActionQueue.Entry) -> String {
    var text = failure.message
    if case .timeout = failure, entry.isStop {
      text = "stop not confirmed: no reply from vehicled; \(schema.device) may still be driving"
    }
    return Output.oneLine("line \(entry.number): \(text)")
  }

  private func note(dropped: [ActionQueue.Entry]) {
    for entry in dropped { output.note("line \(entry.number): not sent: the drive has ended") }
  }

  /// Reads the waiting lines and returns their requests. Of several setpoints, only the last is returned, because an outdated one must not
  /// move the vehicle.
  private mutating func readRequests() throws(Failure) -> [Line] {
    var requests: [Line] = []
    var count = 0
    while count < Self.maxLinesAtOnce, let line = try lines.next() {  // endless input must not block the drive
      count += 1
      number += 1
      guard !line.allSatisfy(\.isWhitespace) else { continue }
      let request = try schema.parse(line, number)
      if request.isSetPoint { requests.removeAll(where: \.request.isSetPoint) }
      requests.append(Line(number: number, request: request))
    }
    return requests
  }

  private mutating func perform(
    _ line: Line, _ lease: String, _ driver: Client, _ actions: inout ActionQueue, _ holder: Client
  ) throws(Failure) {
    let device = schema.device
    do throws(Failure) {
      switch line.request {
      case .set(let property, let value):
        _ = try driver.call(Contract.Set.self, .init(device: device, property: property, value: value, lease: lease))
      case .run(let action, let arguments, _) where line.request.isSetPoint:
        let parameters = Contract.Call.Parameters(device: device, action: action, arguments: arguments, lease: lease)
        show(try driver.call(Contract.Call.self, parameters), to: line.request)
      case .run(_, _, let motion):
        let replaced = try actions.add(.init(number: line.number, request: line.request, lease: motion ? lease : nil))
        for entry in replaced { output.note("line \(entry.number): not sent: stop in line \(line.number) replaces it") }
        return
      }
      lastError = nil
    } catch {
      try report(error, line.request, line.number, holder)
    }
  }

  /// Prints an error that does not end the drive; throws any other.
  private mutating func report(_ failure: Failure, _ request: DriveRequest, _ number: Int, _ holder: Client) throws(Failure) {
    switch failure {
    case .rejected(.leaseLost), .rejected(.notConnected): throw DriveConnections.reason(for: failure, from: holder)
    default:
      if let remark = try message(for: failure, to: request, number) { output.note(Output.oneLine(remark)) }
      rejectedCode = failure.exitCode
    }
  }

  /// Prints the text of a reply. A text that repeats in the replies to setpoints is printed once.
  private mutating func show(_ result: Contract.Call.Result, to request: DriveRequest) {
    if let text = result.text, text != remark || !request.isSetPoint {
      output.lines(text.split(separator: "\n").map { Output.oneLine(String($0)) })
    }
    if request.isSetPoint { remark = result.text }
  }

  /// The message for an error that does not end the drive; nil if the previous setpoint had the same error. Throws any other error.
  mutating func message(for failure: Failure, to request: DriveRequest, _ number: Int) throws(Failure) -> String? {
    switch failure {
    case .rejected(.deviceError), .rejected(.outOfRange): break
    case .rejected(.timeout):
      guard case .run(_, _, false) = request else { throw failure }
    default: throw failure
    }
    if request.isSetPoint {
      guard lastError != failure.message else { return nil }
      lastError = failure.message
    }
    return "line \(number): \(failure.message)"
  }
}
