// The car's status. It is requested only while the car is not driven, because the car reads no commands while it runs top, df and free to
// determine its status. Unknown status lines become additional properties at run time; properties are never removed.
// Source: AutoTT, Status.py and TCP.py.

struct CarStatus: Sendable {
  /// The number of consecutive requests without a response after which the car counts as lost.
  private static let maxMisses = 2
  static let notWhileDriven = CommandError.refused(
    code: .driving, "the car is being driven and would ignore Stop during the request: try again afterwards")
  /// The timeout of a response. Until then other messages wait, because the car may be busy.
  private static let timeout: Nanoseconds = 3 * .second
  /// The delay of the first request after the car's first message.
  private static let firstDelay: Nanoseconds = .second
  private static let maxWaiters = 16
  private static let maxAddedProperties = 32
  private static let maxLines = 64
  private static let maxLineLength = 200

  private static let known: [String: (property: CarProperty, unit: String)] = [
    "Motor battery voltage": (.motorBatteryVoltage, "V"), "Raspberry Pi's battery voltage": (.piBatteryVoltage, "V"),
    "Temperature": (.temperature, "°C"), "CPU usage": (.cpuUsage, "%"), "Memory used": (.memoryUsed, "MB"),
    "Free memory": (.memoryFree, "MB"), "Disk space used": (.diskUsed, "GB"), "Free disk space": (.diskFree, "GB"),
  ]

  private let dialect: CarDialect
  private let interval: Nanoseconds?
  private let lifetime: Property.Lifetime
  /// The schema of the device.
  private(set) var schema: Schema
  /// When the next request is due, unless a response is awaited; nil if only clients request the status.
  private var nextRequest: Instant?
  /// When the awaited response times out; nil if none is awaited.
  private(set) var deadline: Instant?
  private var waiters: [CommandID] = []
  private var misses = 0
  /// The positions in the schema of properties that were added for unknown labels, by label.
  private var addedProperties: [String: Int] = [:]

  init(_ options: CarOptions) {
    dialect = options.dialect
    interval = options.statusInterval
    lifetime = CarProperty.statusLifetime(options)
    schema = Schema(properties: CarProperty.properties(options), actions: CarAction.actions, isProvisional: true)
  }

  /// When the next request is due; nil if requests are disabled, or a response is awaited.
  var due: Instant? { deadline == nil ? nextRequest : nil }
  /// Whether the last requests received no response, and the car has sent no other message since.
  var isUnanswered: Bool { misses >= Self.maxMisses }

  // MARK: Events

  /// Withdraws the status values for a new link.
  func linkUp(_ effects: inout Effects) {
    for index in indices { effects.withdraw(index, "the status was not requested yet") }
  }

  /// Schedules the first request, after the car's first message over this link.
  mutating func sessionBegan(at now: Instant) { nextRequest = interval.map { _ in now &+ Self.firstDelay } }

  /// Starts the timeout, because the link has accepted a request.
  mutating func requestSent(for id: CommandID?, at now: Instant) {
    deadline = now &+ Self.timeout
    nextRequest = interval.map { now &+ $0 }
    if let id { waiters.append(id) }
  }

  /// Adds a command that waits for the awaited response; returns false if none is awaited, or too many commands wait.
  mutating func join(_ id: CommandID) -> Bool {
    guard deadline != nil, waiters.count < Self.maxWaiters else { return false }
    waiters.append(id)
    return true
  }

  /// Resets the count of missing responses after any message of the car.
  mutating func carResponded(_ effects: inout Effects) {
    if isUnanswered { effects.publish(.connected, .bool(true)) }
    misses = 0
  }

  /// Whether the response has not arrived in time. The caller then calls `expire`.
  func isOverdue(at now: Instant) -> Bool { deadline.map { now >= $0 } ?? false }

  mutating func expire(_ effects: inout Effects) {
    // A car of the documented dialect may not support the request.
    if dialect == .asBuilt {
      misses += 1
      if misses == Self.maxMisses { effects.publish(.connected, .bool(false)) }
    }
    complete(.failure(.timeout(milliseconds: Int(Self.timeout / .millisecond))), &effects)
  }

  /// Fails all waiting commands, because the link is lost or being closed.
  mutating func failCommands(_ error: CommandError, _ effects: inout Effects) {
    complete(.failure(error), &effects)
    (nextRequest, misses) = (nil, 0)
  }

  mutating func cancel(_ id: CommandID) { waiters.removeAll { $0 == id } }

  mutating func received(_ body: [UInt8], _ effects: inout Effects) {
    let lines = CarText.list(body[...], maxCount: Self.maxLines, limit: Self.maxLineLength)
    let parsed = lines.compactMap(CarStatusLine.init)
    let before = schema
    schema.isProvisional = false
    for line in parsed where position(of: line) == nil {
      if let property = property(for: line) { schema.properties.append(property) }
    }
    if schema != before { effects.append(.declare(schema)) }
    effects.publish(.status, .list(lines))
    var missing = Set(indices.dropFirst())
    for line in parsed {
      guard let (index, unit) = position(of: line), missing.remove(index) != nil else { continue }
      effects.publish(Reading(index, content(of: line, at: index, unit: unit)))
    }
    for index in missing.sorted() { effects.withdraw(index, "not in the car's status") }
    complete(.success(Report(columns: ["status"], rows: lines.map { [$0] })), &effects)
  }

  private mutating func complete(_ result: Result<Report, CommandError>, _ effects: inout Effects) {
    for id in waiters { effects.append(.complete(id, result)) }
    (deadline, waiters) = (nil, [])
  }

  // MARK: Lines

  /// The positions of the status properties.
  private var indices: [Int] { [CarProperty.status.rawValue] + Array(CarProperty.lines) + addedProperties.values.sorted() }

  /// The property and unit of a line; nil if its label is unknown.
  private func position(of line: CarStatusLine) -> (index: Int, unit: String?)? {
    if let (property, unit) = Self.known[line.label] { return (property.rawValue, unit) }
    return addedProperties[line.label].map { ($0, nil) }
  }

  /// Creates a property for an unknown label; nil if the line has no value, or there are too many additional properties.
  private mutating func property(for line: CarStatusLine) -> Property? {
    guard addedProperties[line.label] == nil, addedProperties.count < Self.maxAddedProperties else { return nil }
    let type: (ValueType, String?)
    switch line.content {
    case .number(_, let unit), .comma(let unit): type = (.float, unit)
    case .text: type = (.string, nil)
    case .empty: return nil
    }
    let base = CarStatusLine.propertyName(for: line.label)
    var name = base
    var number = 2
    while schema.properties.contains(where: { $0.name == name }) { (name, number) = ("\(base)-\(number)", number + 1) }
    addedProperties[line.label] = schema.properties.count
    return Property(
      name, type.0, unit: type.1, lifetime: lifetime, group: .diagnostics, rank: .detail,
      help: "From the car's status: \(line.label.prefix(80))")
  }

  private func content(of line: CarStatusLine, at index: Int, unit: String?) -> Reading.Content {
    let property = schema.properties[index]
    let expectedUnit = unit ?? property.unit
    switch (property.type, line.content) {
    case (_, .empty): return .absent("empty in the car's status")
    case (.string, _): return .value(.string(line.raw))
    case (_, .number(let number, let unit)) where unit == expectedUnit && property.range?.contains(number) != false:
      return .value(.float(number))
    case (_, .comma): return .absent("\"\(line.raw)\" has a decimal comma: set the car's locale to English")
    default: return .absent("invalid value \"\(line.raw)\"")
    }
  }
}

extension Effects {
  fileprivate mutating func publish(_ reading: Reading) {
    switch reading.content {
    case .value(let value): publish(reading.property, value)
    case .absent(let reason): withdraw(reading.property, reason)
    }
  }
}
