// Draws the devices of the view: as a line of tabs or, in wide windows, as a list beside the selected device. The selected device is always
// visible. No I/O.

import Varlink

struct DeviceList {
  let devices: [WatchModel.Watched]
  let selected: Int
  /// The width of the list.
  static let width = 30

  /// Draws one line of tabs; those that do not fit are left out at both ends.
  func drawTabs(on grid: inout Grid) {
    let texts = devices.enumerated().map { index, device in
      let mark = device.device.needsAttention || device.warning != nil ? "!" : ""
      return index == selected ? "[\(device.device.name)\(mark)]" : " \(device.device.name)\(mark) "
    }
    var first = selected
    var width = texts[selected].displayWidth
    while first > 0, width + texts[first - 1].displayWidth <= grid.columns - 4 {
      first -= 1
      width += texts[first].displayWidth
    }
    var x = first > 0 ? grid.put("‹", 0, 0, .dim) : 0
    for index in first..<texts.count {
      if x + texts[index].displayWidth > grid.columns - 1, index != selected {
        grid.put("›", grid.columns - 1, 0, .dim)
        break
      }
      let usual: StyleRole = index == selected ? .bold : .plain
      x = grid.put(texts[index], x, 0, devices[index].device.needsAttention ? .bad : devices[index].warning != nil ? .warn : usual)
    }
  }

  /// Draws the list with the state of each device, and its problem or headline values. If there is no room for all, the last line counts
  /// the others.
  func draw(on grid: inout Grid) {
    let details = devices.map(detail)
    let heights = details.map { $0 == nil ? 1 : 2 }
    let fitsAll = heights.reduce(0, +) < grid.rows
    let room = grid.rows - (fitsAll ? 1 : 2)
    var first = selected
    var height = heights[selected]
    while first > 0, height + heights[first - 1] <= room {
      first -= 1
      height += heights[first]
    }
    var (index, row) = (first, 0)
    while index < devices.count, row + heights[index] <= max(room, heights[selected]) {
      drawTitle(index, row, on: &grid)
      if let detail = details[index] { grid.put(detail.text, 4, row + 1, detail.role, width: Self.width - 4) }
      row += heights[index]
      index += 1
    }
    if !fitsAll {
      let others = [("↑", first), ("↓", devices.count - index)].filter { $0.1 > 0 }.map { "\($0) \($1)" }
      grid.put(others.joined(separator: "  ") + " more", 2, room, .dim)
    }
    for row in 0..<(grid.rows - 1) { grid.put("│", Self.width, row, .dim) }
  }

  /// Name, state, and what the vehicle itself reports as wrong, shortened if there is no room.
  private func drawTitle(_ index: Int, _ row: Int, on grid: inout Grid) {
    let (watched, device) = (devices[index], devices[index].device)
    let short = watched.warning.map(Meaning.short)
    let end = Self.width - (short.map { $0.displayWidth + 1 } ?? 0)
    let name = grid.put(index == selected ? "› " : "  ", 0, row, .bold)
    var x = grid.put(device.name.shortened(to: end - name), name, row, index == selected ? .bold : .plain)
    x = grid.put(device.state, x + 1, row, Meaning.role(of: device), width: end - x - 1)
    guard let full = watched.warning, let short else { return }
    let text = x + 1 + full.displayWidth <= Self.width ? full : short
    grid.put(text, min(x + 1, Self.width - text.displayWidth), row, .warn)
  }

  /// The problem, or the headline values of a device, as many as fit; nil if it has neither.
  private func detail(_ watched: WatchModel.Watched) -> (text: String, role: StyleRole)? {
    let room = Self.width - 4
    if let problem = watched.device.problem {
      return (problem.displayWidth <= room ? problem : watched.device.shortProblem ?? problem, watched.device.needsAttention ? .bad : .dim)
    }
    var text = ""
    for row in watched.rows where row.rank == 1 && row.value != nil {
      let longer = text + (text.isEmpty ? "" : "  ") + row.headline
      if longer.displayWidth < room { text = longer }
    }
    return text.isEmpty ? nil : (text, .dim)
  }
}
