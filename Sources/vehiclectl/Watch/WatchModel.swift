// The data that `watch` shows: devices with their links and problems, readings with age and history, the last event. No I/O: times are
// arguments. Ages count from the time of a reading, not from its arrival: while the process is stopped, readings wait in the socket.

import Protocols
import Varlink

struct WatchModel {
  /// A device and its properties, in order of group and importance.
  struct Watched {
    /// Without its readings.
    fileprivate(set) var device: Contract.Device
    fileprivate(set) var rows: [PropertyRow] = []
    fileprivate var positions: [String: Int] = [:]
    /// Properties of the header that are not selected.
    fileprivate var unlisted: [String: PropertyRow] = [:]

    fileprivate mutating func index() {
      positions = Dictionary(rows.indices.map { (rows[$0].name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    func row(_ name: String) -> PropertyRow? { positions[name].map { rows[$0] } ?? unlisted[name] }

    /// The faults that the vehicle itself reports.
    var warning: String? { Meaning.warning(row) }
  }

  private(set) var devices: [Watched] = []
  /// The notice to show while the connection to the daemon is lost, and all values are outdated.
  private(set) var outage: String?
  /// The last event, and when it was received.
  private(set) var event: (event: Contract.Event, at: Double)?
  /// The declared properties of each device.
  private var declarations: [String: [String: Contract.Property]] = [:]
  /// The order of declaration of each device.
  private var orders: [String: [String: Int]] = [:]
  /// Devices with readings that are not declared.
  private var undeclared: Swift.Set<String> = []
  /// The selected properties, or nil if all are selected.
  private let references: References?
  /// When the first reply was received. The one-second slots of sample histories are counted from this time.
  private var startedAt: Double?

  /// The properties that the header of a device shows, whether they are selected or not.
  static let headerProperties: Swift.Set = ["poll-rate", "mil", "dtc-count"]

  /// Creates an empty model of the selected properties; nil selects all.
  init(_ references: References? = nil) { self.references = references }

  /// Whether any reply was received.
  var hasStarted: Bool { startedAt != nil }

  /// The number of the one-second slot of sample histories that contains this time.
  func historySlot(of time: Double) -> Int { Self.historySlot(of: time, startedAt) }

  private static func historySlot(of time: Double, _ startedAt: Double?) -> Int { Int((time - (startedAt ?? time)).rounded(.down)) }

  /// Stores the declarations of a device. Its rows follow with the next snapshot.
  mutating func declare(_ schema: Contract.Schema) {
    let properties = schema.properties
    declarations[schema.device] = Dictionary(properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    orders[schema.device] = Dictionary(zip(properties.map(\.name), 0...), uniquingKeysWith: { first, _ in first })
    if let position = position(of: schema.device) { arrange(position) }
  }

  /// Applies a reply of Watch.
  mutating func apply(_ result: Contract.Watch.Result, at now: Double, wall: Double) {
    if startedAt == nil { startedAt = now }
    if outage != nil, let snapshot = result.snapshot {
      let names = snapshot.map(\.name)
      devices.removeAll { !names.contains($0.device.name) }
      outage = nil
    }
    for event in result.events ?? [] where event.name == Contract.Event.removed {
      devices.removeAll { $0.device.name == event.device }
    }
    for schema in result.schemas ?? [] { declare(schema) }
    for device in result.snapshot ?? [] { place(device, now, wall) }
    for reading in result.changes ?? [] {
      guard let position = position(of: reading.device) else { continue }
      noteUnlisted(reading, position, now, wall)
      if selects(reading), let index = devices[position].positions[reading.property] {
        Self.note(reading, &devices[position].rows[index], now, wall, startedAt)
      }
    }
    if let last = result.events?.last(where: { $0.name != Contract.Event.removed }) { event = (last, now) }
  }

  /// Withdraws all values until the next snapshot; `notice` is the reason.
  mutating func lose(_ notice: String, at now: Double) {
    if outage == nil {
      for position in devices.indices {
        for index in devices[position].rows.indices { devices[position].rows[index].withdraw(at: historySlot(of: now)) }
      }
    }
    outage = notice
  }

  /// Returns the devices whose schemas must be requested, because they became visible after the last request. Returns each once per
  /// snapshot.
  mutating func takeUndeclared() -> [String] {
    defer { undeclared = [] }
    return undeclared.sorted()
  }

  private func selects(_ reading: Contract.Reading) -> Bool { references?.selects(reading.device, reading.property) ?? true }

  private func position(of device: String) -> Int? { devices.firstIndex { $0.device.name == device } }

  /// Replaces a device by its snapshot. Keeps the sample histories of properties that the device still has.
  private mutating func place(_ snapshot: Contract.Device, _ now: Double, _ wall: Double) {
    let readings = snapshot.readings.filter(selects)
    if references != nil, readings.isEmpty, position(of: snapshot.name) == nil { return }
    var device = snapshot
    device.readings = []
    let position = position(of: device.name) ?? devices.count
    if position == devices.count { devices.append(Watched(device: device)) }
    devices[position].device = device
    let hasSameRows =
      readings.count == devices[position].rows.count && readings.allSatisfy { devices[position].positions[$0.property] != nil }
    if !hasSameRows {
      let earlier = devices[position]
      devices[position].rows = readings.map { reading in
        var row = PropertyRow(reading, declarations[reading.device]?[reading.property])
        if let old = earlier.row(reading.property), old.unit == row.unit { row.continueFrom(old) }
        return row
      }
      arrange(position)
      let declared = declarations[device.name] ?? [:]
      if readings.contains(where: { declared[$0.property] == nil }) { undeclared.insert(device.name) }
    }
    for reading in readings {
      guard let index = devices[position].positions[reading.property] else { continue }
      Self.note(reading, &devices[position].rows[index], now, wall, startedAt)
    }
    devices[position].unlisted = [:]
    for reading in snapshot.readings { noteUnlisted(reading, position, now, wall) }
  }

  private mutating func noteUnlisted(_ reading: Contract.Reading, _ position: Int, _ now: Double, _ wall: Double) {
    guard Self.headerProperties.contains(reading.property), !selects(reading) else { return }
    var row = PropertyRow(reading, declarations[reading.device]?[reading.property])
    Self.note(reading, &row, now, wall, startedAt)
    devices[position].unlisted[reading.property] = row
  }

  /// Sorts the rows of a device after new declarations or readings.
  private mutating func arrange(_ position: Int) {
    let name = devices[position].device.name
    for index in devices[position].rows.indices {
      devices[position].rows[index].declare(declarations[name]?[devices[position].rows[index].name])
    }
    devices[position].rows = PropertyRow.inOrder(devices[position].rows, declared: orders[name] ?? [:])
    devices[position].index()
  }

  /// This is static because a method of the model would need a copy of it, and every change of a row would then copy all rows.
  private static func note(_ reading: Contract.Reading, _ row: inout PropertyRow, _ now: Double, _ wall: Double, _ startedAt: Double?) {
    let measuredAt = reading.age.map { now - age($0, reading.time, wall) }
    row.note(reading, measuredAt: measuredAt, at: now)
    row.record(at: historySlot(of: reading.value == nil ? now : measuredAt ?? now, startedAt))
  }

  /// The age that the daemon reports, or more if the reading waited in the socket. A delay of a day or more, or a negative one, is the
  /// effect of a clock change and is ignored.
  private static func age(_ reported: Double, _ time: Int?, _ wall: Double) -> Double {
    guard let time else { return reported }
    let waited = wall - Double(time) / 1e6
    return (0..<86_400).contains(waited) ? max(reported, waited) : reported
  }
}
