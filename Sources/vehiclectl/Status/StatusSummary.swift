// Formats `status` of all devices, with one line per device and aligned columns for name, state, headline values, health with poll rate,
// and warnings. Devices with problems come first, with the problem in place of the values. A narrow window has fewer values. No I/O.

import Varlink

enum StatusSummary {
  private static let maxValues = 4

  /// The lines, cut to the width if there is one.
  static func lines(_ devices: [DeviceStatus], width: Int?, paint: (String, Style) -> String) -> [String] {
    let ordered = devices.filter(\.device.needsAttention) + devices.filter { !$0.device.needsAttention }
    let names = ordered.map { Output.oneLine($0.device.name) }
    let values = ordered.map { $0.device.problem == nil ? headlines($0) : [] }
    let columns = (0..<maxValues).map { column in values.map { column < $0.count ? $0[column].text.displayWidth : 0 }.max() ?? 0 }
      .filter { $0 > 0 }
    let nameWidth = names.map(\.displayWidth).max() ?? 0
    // Lines with a problem have no columns after the state.
    let stateWidth = { (isBad: Bool) in
      ordered.filter { $0.device.needsAttention == isBad }.map { Output.oneLine($0.device.state).displayWidth }.max() ?? 0
    }
    return ordered.indices.map { index in
      let (status, isBad) = (ordered[index], ordered[index].device.needsAttention)
      let state = Output.oneLine(status.device.state)
      var line = paint(names[index], isBad ? .bad : .bold) + spaces(nameWidth - names[index].displayWidth + 2)
      line += paint(state, isBad ? .bad : status.device.isNotInUse ? .dim : .plain) + spaces(stateWidth(isBad) - state.displayWidth + 2)
      if status.device.problem != nil {
        if let warning = status.warning { line += paint(warning, .warning) + "  " }
        let text = reason(status, room: width.map { max(10, $0 - line.visibleWidth) })
        return (line + paint(Output.oneLine(text), isBad ? .bad : .dim)).truncated(to: width)
      }
      return fitted(line, status, values[index], columns, width: width, paint).withoutTrailingSpaces.truncated(to: width)
    }
  }

  /// The problem and the time of the next attempt, or as much of them as fits: the reason takes precedence.
  private static func reason(_ status: DeviceStatus, room: Int?) -> String {
    let (problem, short) = (status.device.problem ?? "", status.device.shortProblem ?? "")
    let next = status.device.nextAttempt(at: status.now)
    guard let room else { return problem + next }
    let brief = next.replacing("next attempt in", with: "retry in")
    return [problem + next, short + next, short + brief, problem, short].first { $0.displayWidth <= room } ?? short.truncated(to: room)
  }

  /// The line with headline values, health and warnings. If it is too long, leaves out values except the first one, then shortens health
  /// and warnings, then also leaves out the first value.
  private static func fitted(
    _ start: String, _ status: DeviceStatus, _ values: [Cell], _ columns: [Int], width: Int?, _ paint: (String, Style) -> String
  ) -> String {
    let (health, warning) = (status.health, status.warning)
    let dot = health.map { ("●", $0.style) }
    let warnings = [warning, warning.map(Meaning.short)]
    let tails: [[(text: String, style: Style)?]] = [
      [health, warnings[0].map { ($0, .warning) }, status.holder.map { ($0, .warning) }],
      [dot, warnings[0].map { ($0, .warning) }, status.holder.map { ($0, .warning) }],
      [dot, warnings[1].map { ($0, .warning) }, status.holder.map { ($0, .warning) }],
      [dot, warnings[1].map { ($0, .warning) }],
    ]
    let counts = [Array(stride(from: columns.count, to: 0, by: -1)), [0]]
    var line = ""
    for counts in counts {
      for tail in tails {
        for count in counts {
          line = start + middle(status, values, Array(columns.prefix(count)), paint)
          if count == 0 { line = line.withoutTrailingSpaces }
          for part in tail { line += part.map { "  " + paint(Output.oneLine($0.text), $0.style) } ?? "" }
          if line.visibleWidth <= width ?? .max { return line }
        }
      }
    }
    return line
  }

  /// The headline values, right-aligned in their columns; if there are none, the reason.
  private static func middle(_ status: DeviceStatus, _ values: [Cell], _ columns: [Int], _ paint: (String, Style) -> String) -> String {
    let total = columns.reduce(0, +) + 2 * max(0, columns.count - 1)
    guard !values.isEmpty else {
      let reason = Output.oneLine(status.rows.first { $0.rank == 1 && $0.value == nil && !$0.isNotReported }?.reason ?? "")
      return paint(reason, .dim) + spaces(total - reason.displayWidth)
    }
    return columns.indices.map { column in
      let value = column < values.count ? values[column] : ""
      return spaces(columns[column] - value.text.displayWidth) + paint(value.text, value.style)
    }.joined(separator: "  ")
  }

  private static func headlines(_ status: DeviceStatus) -> [Cell] {
    status.rows.filter { $0.rank == 1 && $0.value != nil }.prefix(maxValues).map { Cell($0.headline, Meaning.role(of: $0).style) }
  }

  private static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
}

extension String {
  fileprivate var withoutTrailingSpaces: String { String(prefix(count - reversed().prefix { $0 == " " }.count)) }
}
