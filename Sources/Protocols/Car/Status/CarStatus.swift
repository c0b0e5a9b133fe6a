// The car's status. It is requested only while the car is not driven, because the car does nothing else meanwhile. Unknown lines
// become additional properties at run time; the schema only grows.
// Source: Status.py runs top, df and free on the thread that reads; autott.md §4 and §8.

struct CarStatus: Sendable {
  /// The number of consecutive requests without a response after which the car counts as lost.
  private static let maxMisses = 2
  private var misses = 0

  /// How long the car may take before the next message, and before the missing response is reported.
  static let timeout: Nanoseconds = 3 * .second
  /// The delay of the first request: the car has just started.
  private static let start: Nanoseconds = .second
  private static let maxWaiters = 16
  private static let maxExtras = 32
  static let maxLines = 64
  static let maxLineLength = 200

  private static let known: [String: (signal: CarSignal, unit: String)] = [
    "Motor battery voltage": (.motorBatteryVoltage, "V"), "Raspberry Pi's battery voltage": (.piBatteryVoltage, "V"),
    "Temperature": (.temperature, "°C"), "CPU usage": (.cpuUsage, "%"), "Memory used": (.memoryUsed, "MB"),
    "Free memory": (.memoryFree, "MB"), "Disk space used": (.diskUsed, "GB"), "Free disk space": (.diskFree, "GB"),
  ]

  private let interval: Nanoseconds?
  private let lifetime: Property.Lifetime
  /// When the next request is due.
  private(set) var due: Instant?
  /// Until then the car may be busy with the request.
  private(set) var deadline: Instant?
  private var waiters: [CommandID] = []
  /// The properties of unknown labels, by label.
  private(set) var extras: [String: Int] = [:]
  /// Values of properties that were declared in this turn; readings precede declarations, so they are published in the next one.
  private var early: [Reading] = []

  init(_ options: CarOptions) {
    interval = options.statusInterval
    lifetime = CarSignal.statusLifetime(options)
  }

  /// The positions of the status properties.
  var places: [Int] { [CarSignal.status.rawValue] + Array(CarSignal.lines) + extras.values.sorted() }

  mutating func begin(at now: Instant) { due = interval.map { _ in now &+ Self.start } }

  /// A request was sent.
  mutating func asked(for id: CommandID?, at now: Instant) {
    deadline = now &+ Self.timeout
    due = interval.map { now &+ $0 }
    if let id { waiters.append(id) }
  }

  /// Waits for a response in flight; false if there is none, or too many commands wait.
  mutating func join(_ id: CommandID) -> Bool {
    guard deadline != nil, waiters.count < Self.maxWaiters else { return false }
    waiters.append(id)
    return true
  }

  /// A response has arrived: returns the waiting commands.
  mutating func settle() -> [CommandID] {
    deadline = nil
    defer { waiters = [] }
    return waiters
  }

  /// No response has arrived; true if that was too often.
  mutating func missed() -> Bool {
    misses += 1
    return misses == Self.maxMisses
  }

  mutating func heard() { misses = 0 }

  /// Whether a request is in flight, without any message since.
  var isUnanswered: Bool { misses >= Self.maxMisses }

  mutating func forget(_ id: CommandID) { waiters.removeAll { $0 == id } }

  mutating func reset() { (due, deadline, waiters, misses) = (nil, nil, [], 0) }

  var hasEarly: Bool { !early.isEmpty }

  mutating func keep(_ reading: Reading) { early.append(reading) }

  mutating func takeEarly() -> [Reading] {
    defer { early = [] }
    return early
  }

  // MARK: Lines

  /// The property and unit of a line; nil: unknown.
  func place(of line: CarStatusLine) -> (index: Int, unit: String?)? {
    if let (signal, unit) = Self.known[line.label] { return (signal.rawValue, unit) }
    return extras[line.label].map { ($0, nil) }
  }

  /// A property for an unknown label; nil if it has no value yet or there is no room.
  mutating func property(for line: CarStatusLine, in schema: Schema) -> Property? {
    guard extras[line.label] == nil, extras.count < Self.maxExtras else { return nil }
    let type: (ValueType, String?)
    switch line.content {
    case .number(_, let unit), .comma(let unit): type = (.float, unit)
    case .text: type = (.string, nil)
    case .empty: return nil
    }
    let base = CarStatusLine.name(line.label)
    var name = base
    var number = 2
    while schema.properties.contains(where: { $0.name == name }) { (name, number) = ("\(base)-\(number)", number + 1) }
    extras[line.label] = schema.properties.count
    return Property(name, type.0, unit: type.1, lifetime: lifetime, help: "From the car's status: \(line.label.prefix(80))")
  }
}

extension CarMachine {
  /// When the next request may be sent; nil: not now, because the car is driven, the camera starts, or something else is first.
  var statusDue: Instant? {
    guard session.isReady, !driving.isHeld, camera.isQuiet, queue.commands.isEmpty, status.deadline == nil else { return nil }
    return status.due
  }

  mutating func pollStatus(at now: Instant, _ effects: inout Effects) {
    if let due = statusDue, now >= due { _ = queue.add(CarQueuedCommand(.status, [.status])) }
  }

  mutating func refresh(for id: CommandID, _ effects: inout Effects) {
    if driving.isHeld { return effects.append(.complete(id, .failure(Self.notWhileDriving))) }
    if !status.join(id) { _ = add(CarQueuedCommand(.status, [.status], for: id), &effects) }
  }

  private static let notWhileDriving = CommandError.refused(
    code: "driving", "the car is being driven and would ignore Stop during the request: try again afterwards")

  /// Drops requests that were queued before driving started.
  mutating func dropStatusRequests(_ effects: inout Effects) {
    guard driving.isHeld, queue.commands.contains(where: { $0.purpose == .status }) else { return }
    for queued in queue.removeWaiting(where: { $0.purpose == .status }) {
      if let id = queued.id { effects.append(.complete(id, .failure(Self.notWhileDriving))) }
    }
  }

  mutating func statusAsked(for id: CommandID?, at now: Instant) { status.asked(for: id, at: now) }

  mutating func expireStatus(at now: Instant, _ effects: inout Effects) {
    guard let deadline = status.deadline, now >= deadline else { return }
    reader.note("no response to Status", at: now, &effects)
    // A documented car need not support the request.
    if options.dialect == .asBuilt, status.missed() { publish(.connected, .bool(false), &effects) }
    failStatus(.timeout(milliseconds: Int(CarStatus.timeout / .millisecond)), &effects, isOver: false)
  }

  mutating func failStatus(_ error: CommandError, _ effects: inout Effects, isOver: Bool = true) {
    for id in status.settle() { effects.append(.complete(id, .failure(error))) }
    if isOver { status.reset() }
  }

  mutating func hearStatus(_ body: [UInt8], at now: Instant, _ effects: inout Effects) {
    let lines = CarText.list(body[...], most: CarStatus.maxLines, limit: CarStatus.maxLineLength)
    let read = lines.compactMap(CarStatusLine.init)
    let declared = schema.properties.count
    for line in read where status.place(of: line) == nil {
      if let property = status.property(for: line, in: schema) { declare(property, &effects) }
    }
    effects.publish(CarSignal.status.rawValue, .list(lines))
    var missing = Set(status.places.dropFirst())
    for line in read {
      guard let (index, unit) = status.place(of: line), missing.remove(index) != nil else { continue }
      let reading = Reading(index, content(of: line, at: index, unit: unit))
      if index < declared { effects.publish(reading) } else { status.keep(reading) }
    }
    for index in missing.sorted() { effects.withdraw(index, "not in the car's status") }
    for id in status.settle() {
      effects.append(.complete(id, .success(Report(columns: ["status"], rows: lines.map { [$0] }))))
    }
  }

  private func content(of line: CarStatusLine, at index: Int, unit: String?) -> Reading.Content {
    let property = schema.properties[index]
    let wanted = unit ?? property.unit
    switch (property.type, line.content) {
    case (_, .empty): return .absent("empty in the car's status")
    case (.string, _): return .value(.string(line.raw))
    case (_, .number(let number, let unit)) where unit == wanted && property.range?.contains(number) != false: return .value(.float(number))
    case (_, .comma): return .absent("\"\(line.raw)\" has a decimal comma: set the car's locale to English")
    default: return .absent("invalid value \"\(line.raw)\"")
    }
  }

  /// Publishes values that were postponed in the last turn.
  mutating func publishEarly(_ effects: inout Effects) {
    for reading in status.takeEarly() { effects.publish(reading) }
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
