// The car's status: asking for it while nobody drives, for the car does nothing else while it looks, and making properties
// of its lines. Lines that nobody foresaw become properties of their own while the machine runs; the schema only grows.
// Facts: Status.py runs top, df and free on the thread that reads; autott.md §4 and §8.

struct CarStatus: Sendable {
  /// So many questions in a row without an answer: the car is not there.
  private static let maxMisses = 2
  private var misses = 0

  /// How long the car may look before it is spoken to again, and a person is told that it does not answer.
  static let timeout: Nanoseconds = 3 * .second
  /// Before the first question: the car has just started.
  private static let start: Nanoseconds = .second
  private static let maxAskers = 16
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
  /// When it is to be asked for again, as far as that is up to us.
  private(set) var due: Instant?
  /// Until then the car may be busy with the question.
  private(set) var deadline: Instant?
  private var askers: [CommandID] = []
  /// Properties made of labels that nobody foresaw, by label.
  private(set) var extras: [String: Int] = [:]
  /// What is known of properties that were declared in this turn: readings go before declarations, so it is told in the next.
  private var early: [Reading] = []

  init(_ options: CarOptions) {
    interval = options.statusInterval
    lifetime = CarSignal.statusLifetime(options)
  }

  /// The positions of what a status tells.
  var places: [Int] { [CarSignal.status.rawValue] + Array(CarSignal.lines) + extras.values.sorted() }

  mutating func begin(at now: Instant) { due = interval.map { _ in now &+ Self.start } }

  /// The car was asked.
  mutating func asked(for id: CommandID?, at now: Instant) {
    deadline = now &+ Self.timeout
    due = interval.map { now &+ $0 }
    if let id { askers.append(id) }
  }

  /// Waits for an answer that is on its way; false where there is none, or too many wait.
  mutating func join(_ id: CommandID) -> Bool {
    guard deadline != nil, askers.count < Self.maxAskers else { return false }
    askers.append(id)
    return true
  }

  /// The question is settled: those who asked.
  mutating func settle() -> [CommandID] {
    deadline = nil
    defer { askers = [] }
    return askers
  }

  /// The car did not answer; true where that is too often now.
  mutating func missed() -> Bool {
    misses += 1
    return misses == Self.maxMisses
  }

  mutating func heard() { misses = 0 }

  /// It was asked, and says nothing at all any more.
  var isUnanswered: Bool { misses >= Self.maxMisses }

  mutating func forget(_ id: CommandID) { askers.removeAll { $0 == id } }

  mutating func reset() { (due, deadline, askers, misses) = (nil, nil, [], 0) }

  var hasEarly: Bool { !early.isEmpty }

  mutating func keep(_ reading: Reading) { early.append(reading) }

  mutating func takeEarly() -> [Reading] {
    defer { early = [] }
    return early
  }

  // MARK: Lines

  /// Where a line belongs and what it must be; nil: nowhere.
  func place(of line: CarStatusLine) -> (index: Int, unit: String?)? {
    if let (signal, unit) = Self.known[line.label] { return (signal.rawValue, unit) }
    return extras[line.label].map { ($0, nil) }
  }

  /// A property for a label that nobody foresaw, or nil where there is nothing to see yet, or no room.
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
    return Property(name, type.0, unit: type.1, lifetime: lifetime, help: "As the car's status has it: \(line.label.prefix(80))")
  }
}

extension CarMachine {
  /// When the car is to be asked; nil: not now, for somebody drives, the camera starts, or something else is to be said first.
  var statusDue: Instant? {
    guard case .ready = state, !driving.isHeld, camera.isQuiet, outbox.errands.isEmpty, status.deadline == nil else { return nil }
    return status.due
  }

  mutating func pollStatus(at now: Instant, _ effects: inout Effects) {
    if let due = statusDue, now >= due { _ = outbox.add(CarErrand(.status, [.status])) }
  }

  mutating func refresh(for id: CommandID, _ effects: inout Effects) {
    if driving.isHeld { return effects.append(.complete(id, .failure(Self.notWhileDriving))) }
    if !status.join(id) { _ = add(CarErrand(.status, [.status], for: id), &effects) }
  }

  private static let notWhileDriving = CommandError.refused(
    code: "driving", "somebody drives, and the car would not hear Stop while it looks: ask again afterwards")

  /// What was to be asked before somebody began to drive is not asked.
  mutating func dropUntimelyErrands(_ effects: inout Effects) {
    guard driving.isHeld, outbox.errands.contains(where: { $0.purpose == .status }) else { return }
    for errand in outbox.removeWaiting(where: { $0.purpose == .status }) {
      if let id = errand.id { effects.append(.complete(id, .failure(Self.notWhileDriving))) }
    }
  }

  mutating func statusAsked(for id: CommandID?, at now: Instant) { status.asked(for: id, at: now) }

  mutating func expireStatus(at now: Instant, _ effects: inout Effects) {
    guard let deadline = status.deadline, now >= deadline else { return }
    note("the car does not answer to Status", at: now, &effects)
    // As documented it need not know the question.
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
    case (_, .empty): return .absent("the car says nothing for it")
    case (.string, _): return .value(.string(line.raw))
    case (_, .number(let number, let unit)) where unit == wanted && property.range?.contains(number) != false: return .value(.float(number))
    case (_, .comma): return .absent("\"\(line.raw)\" has a decimal comma: set the car's system to English")
    default: return .absent("the car says \"\(line.raw)\"")
    }
  }

  /// Tells what the last turn could not.
  mutating func tellEarlyReadings(_ effects: inout Effects) {
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
