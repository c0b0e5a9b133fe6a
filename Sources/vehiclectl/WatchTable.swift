// The table of `watch`: devices with their links, readings with age and rate, the last event. Pure: times are arguments. Ages count from
// the time of a reading, not from its arrival: while the process is stopped, readings wait in the socket.

import Protocols
import Varlink

struct WatchTable {
  /// The time in seconds over which the rate is measured. If the last update is older than that, no rate is shown.
  static let window = 2.0

  private struct Row {
    var reading: Contract.Reading
    var receivedAt: Double
    /// Age on arrival, in seconds.
    var age: Double?
    /// The times of the updates within `window` before the last one.
    var updates: [Double] = []

    func age(at now: Double) -> Double? { age.map { $0 + now - receivedAt } }

    /// Updates per second between the first and the last one in `updates`.
    func rate(at now: Double) -> Double? {
      guard let first = updates.first, let last = updates.last, last > first, age(at: now) ?? 0 <= WatchTable.window else { return nil }
      return Double(updates.count - 1) / (last - first)
    }
  }

  private var devices: [Contract.Device] = []
  /// For each device its rows by property, and the properties in the order of the table.
  private var rows: [[String: Row]] = []
  private var orders: [[String]] = []
  private var event: Contract.Event?

  /// Applies a reply of Watch.
  mutating func apply(_ result: Contract.Watch.Result, at now: Double, wall: Double) {
    for event in result.events ?? [] where event.name == Contract.Event.removed { remove(event.device) }
    for device in result.snapshot ?? [] {
      let position = position(of: device.name) ?? add(device)
      devices[position] = device
      for reading in device.readings { store(reading, at: position, now, wall, isUpdate: false) }
      let declared = Set(device.readings.map(\.property))  // a new schema may have removed some
      orders[position].removeAll { !declared.contains($0) }
      rows[position] = rows[position].filter { declared.contains($0.key) }
    }
    for reading in result.changes ?? [] {
      let device = Contract.Device(name: reading.device, kind: "new", state: "")
      store(reading, at: position(of: reading.device) ?? add(device), now, wall, isUpdate: true)
    }
    if let last = result.events?.last { event = last }
  }

  private func position(of device: String) -> Int? { devices.firstIndex { $0.name == device } }

  private mutating func add(_ device: Contract.Device) -> Int {
    devices.append(device)
    rows.append([:])
    orders.append([])
    return devices.count - 1
  }

  private mutating func remove(_ device: String) {
    guard let position = position(of: device) else { return }
    devices.remove(at: position)
    rows.remove(at: position)
    orders.remove(at: position)
  }

  /// Stores a reading of the device at this position. `isUpdate` is false for a reading of a snapshot, which does not count for the rate.
  private mutating func store(_ reading: Contract.Reading, at position: Int, _ now: Double, _ wall: Double, isUpdate: Bool) {
    let previous = rows[position][reading.property]
    if previous == nil { orders[position].append(reading.property) }
    let measuredAt = reading.time.map { Double($0) / 1e6 } ?? wall
    var row = Row(reading: reading, receivedAt: now, age: Self.age(reading, measuredAt, wall), updates: previous?.updates ?? [])
    if isUpdate {
      row.updates.removeAll { !(measuredAt - Self.window..<measuredAt).contains($0) }
      row.updates.append(measuredAt)
    }
    rows[position][reading.property] = row
  }

  /// The age that the daemon reports, or more if the reading waited in the socket. A delay of a day or more, or a negative one, is the
  /// effect of a clock change and is ignored.
  private static func age(_ reading: Contract.Reading, _ measuredAt: Double, _ wall: Double) -> Double? {
    let waited = wall - measuredAt
    return reading.age.map { (0..<86_400).contains(waited) ? max($0, waited) : $0 }
  }

  /// The lines, at most `limit`; the last one gives the number of omitted lines.
  func lines(at now: Double, wall: Double, rows limit: Int, paint: (String, Style) -> String) -> [String] {
    var lines: [String] = []
    for position in devices.indices {
      if position > 0 { lines.append("") }
      lines.append(StatusCommand.header(devices[position], paint: paint))
      for link in devices[position].links {
        lines.append("  " + paint(Output.oneLine("\(link.url)  \(Format.link(link, now: wall))"), Format.style(of: link)))
      }
      lines += table(position, now).lines(indent: 2, paint: paint)
    }
    if let event { lines += ["", Output.oneLine("\(event.device): \(event.text)")] }
    guard lines.count > limit else { return lines }
    let more = lines.count - limit + 1
    return lines.prefix(limit - 1) + [paint("… \(more) more lines; enlarge the window, or name the properties to watch", .dim)]
  }

  private func table(_ position: Int, _ now: Double) -> Table {
    var table = Table("property", ">value", "unit", ">age", ">rate", "")
    for row in orders[position].compactMap({ rows[position][$0] }) {
      let (value, remark) = Format.cells(row.reading)
      let age = row.age(at: now).map(Format.duration) ?? ""
      let rate = row.rate(at: now).map { "\(Format.tenths($0))/s" } ?? ""
      table.rows.append([
        Cell(row.reading.property), value, Cell(row.reading.unit ?? ""), Cell(age, .dim), Cell(rate, .dim), remark,
      ])
    }
    return table
  }
}
