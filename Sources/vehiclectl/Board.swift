// What watch shows on a terminal: devices with their links, readings with age and rate, the last event. Pure: instants are
// arguments. Owns the latest of everything and, per property, when it came during the last seconds.

import Protocols

struct Board {
  /// The rate is counted over this many seconds.
  static let window = 2.0

  private struct Row {
    var reading: Contract.Reading
    var came: Double
    var arrivals: [Double]
  }

  private var devices: [Contract.Device] = []
  private var rows: [[String: Row]] = []
  private var orders: [[String]] = []
  private var event: Contract.Event?
  private var start: Double?

  /// Takes a reply of Watch.
  mutating func take(_ result: Contract.Watch.Result, at now: Double, wall: Double) {
    let start = start ?? now
    self.start = start
    for event in result.events ?? [] where event.name == Contract.Event.removed { remove(event.device) }
    for device in result.snapshot ?? [] {
      let position = position(of: device.name) ?? add(device)
      devices[position] = device
      for reading in device.readings { note(reading, at: position, now, counts: false) }
      let declared = Set(device.readings.map(\.property))  // a new schema may have taken some away
      orders[position].removeAll { !declared.contains($0) }
      rows[position] = rows[position].filter { declared.contains($0.key) }
    }
    for reading in result.changes ?? [] {
      let device = Contract.Device(name: reading.device, kind: "new", state: "")
      note(reading, at: position(of: reading.device) ?? add(device), now, counts: true)
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

  private mutating func note(_ reading: Contract.Reading, at position: Int, _ now: Double, counts: Bool) {
    guard var row = rows[position][reading.property] else {
      orders[position].append(reading.property)
      rows[position][reading.property] = Row(reading: reading, came: now, arrivals: counts ? [now] : [])
      return
    }
    row.reading = reading
    row.came = now
    if counts {
      row.arrivals.removeAll { $0 <= now - Self.window }
      row.arrivals.append(now)
    }
    rows[position][reading.property] = row
  }

  /// The picture in at most so many rows; says how many more there would be.
  func lines(at now: Double, wall: Double, rows limit: Int, paint: (String, Style) -> String) -> [String] {
    var lines: [String] = []
    for position in devices.indices {
      if position > 0 { lines.append("") }
      lines.append(StatusCommand.header(devices[position], paint: paint))
      for link in devices[position].links {
        lines.append("  " + paint(Output.oneLine("\(link.url)  \(Words.link(link, now: wall))"), Words.style(of: link)))
      }
      lines += table(position, now).lines(indent: 2, paint: paint)
    }
    if let event { lines += ["", Output.oneLine("\(event.device): \(event.text)")] }
    guard lines.count > limit else { return lines }
    let more = lines.count - limit + 1
    return lines.prefix(limit - 1) + [paint("… \(more) more lines: make the window taller, or name what to watch", .dim)]
  }

  private func table(_ position: Int, _ now: Double) -> Table {
    var table = Table("property", ">value", "unit", ">age", ">rate", "")
    for row in orders[position].compactMap({ rows[position][$0] }) {
      let age = row.reading.age.map { Words.duration($0 + now - row.came) } ?? ""
      let since = max(min(Self.window, now - (start ?? now)), 0.5)
      let arrivals = row.arrivals.reduce(0) { $0 + ($1 > now - Self.window ? 1 : 0) }
      table.rows.append([
        Cell(row.reading.property), Cell(row.reading.value?.text ?? "-", row.reading.value == nil ? .dim : .plain),
        Cell(row.reading.unit ?? ""), Cell(age, .dim), Cell(arrivals == 0 ? "" : "\(Words.tenths(Double(arrivals) / since))/s", .dim),
        Cell(row.reading.reason ?? "", .dim),
      ])
    }
    return table
  }
}
