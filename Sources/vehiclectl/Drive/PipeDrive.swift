// Drives a device with lines of JSON from another program. Set-points are never repeated: without new lines the deadline stops the vehicle.

import ArgumentParser
import Glibc
import Protocols

struct PipeDrive {
  private struct Line {
    var number: Int
    var order: DriveRequest
  }

  let common: CommonOptions
  let output: Output
  let schema: DriveSchema
  /// Milliseconds.
  let deadline: Int
  private let input: Int32
  private var lines: LineReader
  private var number = 0
  private var remark: String?
  /// The error of the last set-point, if any.
  private var lastError: String?
  /// The exit code of the last rejected line, which becomes the exit status of the drive.
  private var rejectedCode: Int32?
  private static let maxAtOnce = 4096

  init(_ common: CommonOptions, _ output: Output, _ schema: DriveSchema, deadline: Int, input: Int32 = STDIN_FILENO) {
    self.common = common
    self.output = output
    self.schema = schema
    self.deadline = deadline
    self.input = input
    lines = LineReader(input)
  }

  /// Drives until the end of the input or an interrupt.
  mutating func run(holder: Client) throws {
    let driver = try common.connect(output)
    let (device, input) = (schema.device, input)
    var lease: String?
    // The lease lasts as long as this stream; once it is granted, input is read between its replies.
    let parameters = Contract.Drive.Parameters(device: device, deadlineMilliseconds: deadline)
    try holder.stream(
      Contract.Drive.self, parameters, first: common.replyTimeout, silence: nil, also: { lease == nil ? -1 : input }
    ) { result in
      if Interrupt.received { return false }
      if let result {
        lease = result.lease
        output.note("driving \(device): send a line of JSON at least every \(deadline) ms; end with Ctrl-D")
      }
      guard let lease else { return true }
      for line in try waiting() { try perform(line, lease, driver, holder) }
      return !lines.hasEnded
    }
    if let rejectedCode { throw ExitCode(rejectedCode) }
  }

  /// The requests of the lines that are waiting; of set-points only the last, because an old one must not move the vehicle.
  private mutating func waiting() throws(Failure) -> [Line] {
    var waiting: [Line] = []
    var count = 0
    while count < Self.maxAtOnce, let line = try lines.next() {  // endless input must not block driving
      count += 1
      number += 1
      guard !line.allSatisfy(\.isWhitespace) else { continue }
      let order = try schema.parse(line, number)
      if order.isSetPoint { waiting.removeAll(where: \.order.isSetPoint) }
      waiting.append(Line(number: number, order: order))
    }
    return waiting
  }

  private mutating func perform(_ line: Line, _ lease: String, _ driver: Client, _ holder: Client) throws(Failure) {
    do throws(Failure) {
      try send(line.order, lease, driver)
      if line.order.isSetPoint { lastError = nil }
    } catch {
      switch error {
      case .rejected(.leaseLost), .rejected(.notConnected): throw DriveConnections.reason(for: error, from: holder)
      default:
        if let remark = try message(for: error, to: line.order, line.number) { output.note(Output.oneLine(remark)) }
        rejectedCode = error.exitCode
      }
    }
  }

  /// The message for an error that does not end the drive; nil if the previous set-point had the same error. Throws any other error.
  mutating func message(for failure: Failure, to order: DriveRequest, _ number: Int) throws(Failure) -> String? {
    switch failure {
    case .rejected(.deviceError), .rejected(.outOfRange): break
    case .rejected(.timeout):
      guard case .run(_, _, false) = order else { throw failure }
    default: throw failure
    }
    if order.isSetPoint {
      guard lastError != failure.message else { return nil }
      lastError = failure.message
    }
    return "line \(number): \(failure.message)"
  }

  private mutating func send(_ order: DriveRequest, _ lease: String, _ driver: Client) throws(Failure) {
    let device = schema.device
    switch order {
    case .set(let property, let value):
      _ = try driver.call(Contract.Set.self, .init(device: device, property: property, value: value, lease: lease))
    case .run(let action, let arguments, let motion):
      let result = try driver.call(
        Contract.Call.self,
        .init(device: device, action: action, arguments: arguments.isEmpty ? nil : arguments, lease: motion ? lease : nil))
      // The same reply to every set-point is printed once.
      if let text = result.text, text != remark || !motion { output.lines(text.split(separator: "\n").map { Output.oneLine(String($0)) }) }
      if motion { remark = result.text }
    }
  }
}
