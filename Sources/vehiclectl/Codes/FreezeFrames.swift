// Formats freeze frames as tables and as nested JSON. The action freeze-frames of kind obd reports them, one value per row.

import Protocols
import Varlink

struct FreezeFrames {
  /// One frame. Its rows are contiguous in the report.
  private struct Frame {
    let ecu: String
    let number: String
    let code: String
    var values: [(name: String, value: String, unit: String)] = []
  }

  private let frames: [Frame]
  let text: String?

  init(_ report: TroubleReport) {
    var frames: [Frame] = []
    for row in report.rows {
      let cell = { (title: String) in report.cell(title, of: row) ?? "" }
      if frames.last.map({ ($0.ecu, $0.number) != (cell("ecu"), cell("frame")) }) ?? true {
        frames.append(Frame(ecu: cell("ecu"), number: cell("frame"), code: cell("code")))
      }
      if !cell("name").isEmpty { frames[frames.count - 1].values.append((cell("name"), cell("value"), cell("unit"))) }
    }
    (self.frames, text) = (frames, report.text)
  }

  /// A title and a table for each frame, then the remarks.
  func lines(width: Int? = nil, paint: (String, Style) -> String) -> [String] {
    let tables = frames.flatMap { frame -> [String] in
      var table = Table("name", ">value", "unit")
      table.rows = frame.values.map { [Cell($0.name), Cell($0.value), Cell($0.unit)] }
      let title = Output.oneLine("freeze frame of \(frame.code)\(frame.ecu.isEmpty ? "" : " (\(frame.ecu), frame \(frame.number))")")
      return ["", paint(title, .bold)]
        + (frame.values.isEmpty ? ["  no known values"] : table.lines(indent: 2, width: width, paint: paint))
    }
    let remarks = text.map { $0.split(separator: "\n").map { Output.oneLine(String($0)) } } ?? []
    return tables + remarks
  }

  var json: JSON {
    .array(
      frames.map { frame in
        let values = frame.values.map { value -> JSON in
          [
            "name": .string(value.name), "value": JSON(cell: value.value), "unit": value.unit.isEmpty ? .null : .string(value.unit),
          ]
        }
        return [
          "ecu": frame.ecu.isEmpty ? .null : .string(frame.ecu), "frame": JSON(cell: frame.number), "code": .string(frame.code),
          "values": .array(values),
        ]
      })
  }
}

extension JSON {
  /// The value of a report's cell: a number if it is one, null if it is empty, otherwise a string.
  init(cell: String) {
    if cell.isEmpty {
      self = .null
    } else if let whole = Int(cell) {
      self = .int(whole)
    } else if let number = Double(cell), number.isFinite {
      self = .float(number)
    } else {
      self = .string(cell)
    }
  }
}

extension Client {
  /// Calls an action, shows the progress that it reports, and returns its last reply. `timeout` (seconds) applies to each reply.
  func follow(_ parameters: Contract.Call.Parameters, within timeout: Double, _ output: Output) throws -> Contract.Call.Result {
    var last = Contract.Call.Result(Report())
    defer { output.progress(nil) }
    try stream(Contract.Call.self, parameters, firstReply: timeout, laterReplies: timeout) { result in
      if Interrupt.received { throw Failure.other("interrupted") }
      guard let result else { return true }
      last = result
      if let progress = result.progress, progress < 1, let text = result.text { output.progress(Output.oneLine(text)) }
      return true
    }
    return last
  }
}
