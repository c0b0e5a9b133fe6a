// `status` of all devices: one line each, in aligned columns: name, state, headline values, health and poll rate, warnings. Those with
// problems come first, with the reason in place of the values. Pure.

import Varlink

enum StatusSummary {
  private static let maxValues = 4

  /// The lines, cut to the width if there is one.
  static func lines(_ devices: [DeviceStatus], width: Int?, paint: (String, Style) -> String) -> [String] {
    let hasProblem = { (status: DeviceStatus) in status.device.problem != nil && !status.device.isDisconnected }
    let ordered = devices.filter(hasProblem) + devices.filter { !hasProblem($0) }
    let names = ordered.map { Output.oneLine($0.device.name) }
    let values = ordered.map { $0.device.problem == nil ? headlines($0) : [] }
    let columns = (0..<maxValues).map { column in values.map { column < $0.count ? $0[column].text.cells : 0 }.max() ?? 0 }
      .filter { $0 > 0 }
    let nameWidth = names.map(\.cells).max() ?? 0
    // Lines with a problem have no columns after the state.
    let stateWidth = { (isBad: Bool) in ordered.filter { hasProblem($0) == isBad }.map { Output.oneLine($0.device.state).cells }.max() ?? 0
    }
    return ordered.indices.map { index in
      let (status, isBad) = (ordered[index], hasProblem(ordered[index]))
      let state = Output.oneLine(status.device.state)
      var line = paint(names[index], isBad ? .bad : .bold) + spaces(nameWidth - names[index].cells + 2)
      line += paint(state, isBad ? .bad : .plain) + spaces(stateWidth(isBad) - state.cells + 2)
      if let problem = status.device.problem {
        if let warning = status.warning { line += paint(warning, .warning) + "  " }
        // A long reason is cut so that the next attempt is visible.
        let next = status.device.nextAttempt(at: status.now)
        let room = width.map { max(10, $0 - line.visibleCells - next.cells) }
        return (line + paint(Output.oneLine(problem).truncated(to: room) + next, isBad ? .bad : .dim)).truncated(to: width)
      }
      line += middle(status, values[index], columns, paint)
      if let health = status.health { line += "  " + paint(Output.oneLine(health.text), health.style) }
      for warning in [status.warning, status.holder] { line += warning.map { "  " + paint(Output.oneLine($0), .warning) } ?? "" }
      return line.withoutTrailingSpaces.truncated(to: width)
    }
  }

  /// The headline values in their columns, numbers to the right; if there is none, the reason.
  private static func middle(_ status: DeviceStatus, _ values: [Cell], _ columns: [Int], _ paint: (String, Style) -> String) -> String {
    let total = columns.reduce(0, +) + 2 * max(0, columns.count - 1)
    guard !values.isEmpty else {
      let reason = Output.oneLine(status.rows.first { $0.rank == 1 && $0.value == nil && !$0.isNotReported }?.reason ?? "")
      return paint(reason, .dim) + spaces(total - reason.cells)
    }
    return columns.indices.map { column in
      let value = column < values.count ? values[column] : ""
      return spaces(columns[column] - value.text.cells) + paint(value.text, value.style)
    }.joined(separator: "  ")
  }

  private static func headlines(_ status: DeviceStatus) -> [Cell] {
    status.rows.filter { $0.rank == 1 && $0.value != nil }.prefix(maxValues).map { Cell($0.headline, Meaning.ink(of: $0).style) }
  }

  private static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
}

extension String {
  fileprivate var withoutTrailingSpaces: String { String(prefix(count - reversed().prefix { $0 == " " }.count)) }
}
