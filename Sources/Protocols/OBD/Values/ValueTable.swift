// The properties of the device and their published values: the schema, the positions of rows, the reasons for absent values (each published
// once), the scaling that the ECUs report, status and fault. The vehicle's properties come first and change with vehicle detection; those
// of the adapter and the polling follow. A property that keeps its name keeps its value. If several have the same name, the first one is
// used.

struct ValueTable: Sendable {
  private(set) var schema = Schema()
  /// The number of the vehicle's properties, which come first in the schema.
  private var vehiclePropertyCount = 0
  /// For each property, the reason that was published for its absence.
  private var absences: [Absence] = []
  /// The positions of properties that show that the vehicle is in use.
  private var signsOfUse: [Int] = []
  /// When a value last showed that the vehicle is in use; `.min` if none has.
  private(set) var inUseAt: Instant = .min
  /// The scaling reported by the ECUs on this connection.
  private(set) var scales = Scales()
  /// The last polled speeds of motor, vehicle and engine.
  private(set) var speeds = Motion.Polled()
  private(set) var status = StatusWord?.none
  private(set) var fault: String?
  /// The vehicle that was reported last.
  private var vehicle: String?
  private var timeouts = 0
  private var badReplies = 0
  private let actions: [Action]
  private let signals: [CustomSignal]
  /// The configured overrides of known properties.
  private let overrides: PropertyOverrides

  /// The states of a device of this kind, as published.
  enum StatusWord: String {
    /// There is no link.
    case waiting
    /// The adapter is being initialised.
    case starting
    /// The vehicle responds.
    case polling
    /// The adapter works but the vehicle does not respond; the voltage does not explain it.
    case carSilent = "car-silent"
    /// The vehicle does not respond, and its battery is not being charged.
    case carAsleep = "car-asleep"
    /// The vehicle responds but is not in use: polling is paused.
    case parked
    /// The adapter is not connected to a vehicle.
    case noCar = "no-car"
    /// The adapter sleeps as the vehicle does.
    case adapterAsleep = "adapter-asleep"
    /// The adapter or its replies fail.
    case degraded
  }

  /// The part of the requested PIDs that a response contained.
  enum Share { case whole, part, one, none }

  /// The requests with their rows at their positions in the schema.
  struct Layout {
    /// The rows of the fast request; empty if it is a data record.
    let fast: [PollRequest.Row]
    let requests: [PollRequest]
  }

  init(actions: [Action], signals: [CustomSignal], overrides: PropertyOverrides) {
    (self.actions, self.signals, self.overrides) = (actions, signals, overrides)
  }

  // MARK: Layout

  private static let signOfUseNames = ["rpm", "rpm-2", "speed", "charging", "ignition"]

  /// Sets the vehicle's properties: those of the BMS data record, of the fast request and of the other requests. `period` is the period of
  /// the configured rate.
  mutating func layOut(hasBatteryRecord: Bool, fast: RequestLayout?, _ layouts: [RequestLayout], period: Nanoseconds) -> Layout {
    var properties = hasBatteryRecord ? BMSRecord.properties(freshFor: DeviceProperty.freshFor(period)) : []
    var names = Set(properties.map(\.name) + DeviceProperty.names)
    let customNames = Set(signals.map(\.name))
    /// Adds the properties of a request to the schema, and returns its rows with their positions.
    func place(_ layout: RequestLayout, every requestPeriod: Nanoseconds) -> [PollRequest.Row] {
      // Requests that share the device's rate are not sent more often.
      let period = layout.request.isFast ? max(requestPeriod, period) : requestPeriod
      return layout.rows.compactMap { parameter, row in
        let isPolled = layout.isCustom || !customNames.contains(row.property.name) && overrides.polls(row.property.name)
        guard isPolled, names.insert(row.property.name).inserted else { return nil }
        var property = row.property
        if case .fresh = property.lifetime { property.lifetime = .fresh(max(3 &* period, 2 * .second)) }
        properties.append(property)
        return PollRequest.Row(position: properties.count - 1, parameter: parameter, row: row)
      }
    }
    let fastRows = fast.map { place($0, every: $0.request.period) } ?? []
    let requests = layouts.compactMap { layout -> PollRequest? in
      let names = layout.rows.map(\.row.property.name)
      let defaultPeriod = layout.request.period
      guard let period = layout.isCustom ? defaultPeriod : overrides.period(of: names, default: defaultPeriod) else { return nil }
      let priority = names.isEmpty ? layout.request.priority : overrides.priority(of: names)
      return layout.request.placed(place(layout, every: period), every: period, priority)
    }
    vehiclePropertyCount = properties.count
    properties += DeviceProperty.properties(period: period)
    // `map` makes a copy without spare capacity.
    schema = Schema(properties: properties.map(\.self), actions: actions)
    signsOfUse =
      vehiclePropertyCount == 0
      ? [] : Self.signOfUseNames.compactMap { name in properties[..<vehiclePropertyCount].firstIndex { $0.name == name } }
    absences = [Absence](repeating: .none, count: properties.count)
    return Layout(fast: fastRows, requests: requests)
  }

  /// Publishes the schema. Must precede all values of the turn, because it changes the positions of properties.
  mutating func declare(
    hasBatteryRecord: Bool, fast: RequestLayout?, _ layouts: [RequestLayout], period: Nanoseconds, of ecus: [Discovery.ECU],
    _ effects: inout Effects
  ) -> Layout {
    assert(effects.readings.isEmpty)
    scales = Scales(of: ecus)
    let before = schema
    let layout = layOut(hasBatteryRecord: hasBatteryRecord, fast: fast, layouts, period: period)
    if schema != before { effects.append(.declare(schema)) }
    return layout
  }

  /// Whether the vehicle has a property that shows whether it is in use.
  var hasSignsOfUse: Bool { !signsOfUse.isEmpty }

  /// The positions of the vehicle's properties that become absent when it does not respond.
  var freshPositions: [Int] { (0..<vehiclePropertyCount).filter { schema.properties[$0].lifetime != .retained } }

  func name(at position: Int) -> String { schema.properties[position].name }

  /// The position in the schema of a property of the adapter or the polling.
  private func position(_ property: DeviceProperty) -> Int { vehiclePropertyCount + property.rawValue }

  // MARK: Values

  func publish(_ property: DeviceProperty, _ value: Value, _ effects: inout Effects) { effects.publish(position(property), value) }
  func withdraw(_ property: DeviceProperty, _ reason: String, _ effects: inout Effects) { effects.withdraw(position(property), reason) }

  /// Publishes the detected vehicle, and reports it as an event if it is another one than before.
  mutating func publish(vehicle name: String, _ effects: inout Effects) {
    publish(.vehicle, .string(name), &effects)
    if vehicle != name { effects.append(.event(name: "vehicle", text: "vehicle detected: \(name)")) }
    vehicle = name
  }

  /// Publishes the value of a property, or its absence.
  mutating func publish(_ decoded: Decoded, at position: Int, at now: Instant, _ effects: inout Effects) {
    switch decoded {
    case .value(let value):
      absences[position] = .none
      effects.publish(position, value)
      if signsOfUse.contains(position), value == .bool(true) || value.number.map({ $0 != 0 }) ?? false { inUseAt = now }
    case .absent(let absence):
      if absences[position] != absence { effects.withdraw(position, absence.message) }
      absences[position] = absence
    }
  }

  /// Publishes BMS data record 0x01.
  mutating func publishRecord(_ reader: CANReader, _ range: Range<Int>, at now: Instant, _ effects: inout Effects) {
    speeds.beginRecord()
    reader.payload.withUnsafeBufferPointer { payload in
      BMSRecord.read(UnsafeBufferPointer(rebasing: payload[range])) { position, decoded in
        publish(decoded, at: position, at: now, &effects)
        guard BMSRecord.motorSpeeds.contains(position), case .value(let value) = decoded, let speed = value.number else { return }
        speeds.record(motor: speed, at: now)
      }
    }
  }

  /// Publishes the payload in `range`: a data record as a whole, or each PID with the ECU's scaling. Returns which part of the requested
  /// PIDs it contained; `none` is an invalid reply.
  mutating func publish(
    _ rows: [PollRequest.Row], _ parameters: [PollRequest.Parameter], _ reader: CANReader, _ range: Range<Int>, from source: UInt32?,
    at now: Instant, _ effects: inout Effects
  ) -> Share {
    reader.payload.withUnsafeBufferPointer { payload in
      let data = UnsafeBufferPointer(rebasing: payload[range])
      guard !parameters.isEmpty else {
        for row in rows { publish(row.row.read(data), at: row.position, at: now, &effects) }
        return .whole
      }
      guard let end = CANReader.end(of: parameters, in: data, isBare: source == nil) else { return .none }
      var (position, found) = (0, 0)
      while position < end, let parameter = parameters.first(where: { $0.number == data[position] }) {
        let part = UnsafeBufferPointer(rebasing: data[position + 1..<position + 1 + parameter.length])
        for row in rows where row.parameter == parameter.number {
          publish(row.row.value(part, scales, from: source), at: row.position, at: now, &effects)
        }
        speeds.record(parameter.number, part, at: now)
        position += 1 + parameter.length
        found += 1
      }
      return found >= parameters.count ? .whole : found > 1 ? .part : .one
    }
  }

  /// Stores the scaling reported by each ECU.
  mutating func recordScales(_ reader: CANReader) {
    for message in reader.messages {
      let bytes = Array(reader.bytes(of: message))
      _ = StandardParameter.split(bytes[...]) { number, data in
        bytes[data].withUnsafeBufferPointer { scales.record(number, $0, from: message.source) }
      }
    }
  }

  /// Resets the scaling, because another vehicle may respond from now on.
  mutating func resetScales() { scales.reset() }

  // MARK: Absences

  /// Withdraws the properties of a request.
  mutating func withdraw(_ request: PollRequest, _ reason: String, _ effects: inout Effects) {
    for row in request.rows {
      effects.withdraw(row.position, reason)
      absences[row.position] = .none
    }
  }

  /// Withdraws the vehicle's values and the measurements of polling, because the vehicle does not respond or is not polled.
  mutating func withdrawVehicleValues(_ reason: String, _ effects: inout Effects) {
    for position in freshPositions { effects.withdraw(position, reason) }
    for property in DeviceProperty.measured { withdraw(property, reason, &effects) }
    resetAbsences()
  }

  /// Withdraws all properties of the previous vehicle except one.
  mutating func withdrawAll(except position: Int, _ reason: String, _ effects: inout Effects) {
    for other in 0..<vehiclePropertyCount where other != position { effects.withdraw(other, reason) }
    resetAbsences()
  }

  /// Resets the published reasons, so that the next absence of each property is published again.
  mutating func resetAbsences() {
    for index in absences.indices { absences[index] = .none }
  }

  // MARK: State of the device

  mutating func publish(status word: StatusWord, _ effects: inout Effects) {
    status = word
    effects.append(.status(word.rawValue))
  }

  mutating func publish(fault message: String?, _ effects: inout Effects) {
    fault = message
    effects.append(.fault(message))
  }

  mutating func countTimeout(_ effects: inout Effects) {
    timeouts &+= 1
    publish(.timeouts, .int(timeouts), &effects)
  }

  mutating func countBadReply(_ bytes: [UInt8], _ effects: inout Effects) {
    badReplies &+= 1
    publish(.badReplies, .int(badReplies), &effects)
    publish(.lastBadReply, .string(printable(bytes)), &effects)
  }
}
