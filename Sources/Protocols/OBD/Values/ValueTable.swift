// The properties of the device and their published values: the schema, the positions of the properties in it, the reasons for absent values
// (each published once), the scaling that the ECUs report, status and fault. The vehicle's properties come first and change with vehicle
// detection; those of the adapter and the polling follow. A property that keeps its name keeps its value. If several properties have the
// same name, the first one is used.

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
  /// The configured property that is the voltage of the 12 V battery, or nil if only the adapter measures it, and its position.
  private let voltageProperty: String?
  private var voltagePosition: Int?
  /// Its last value in V.
  private(set) var batteryVoltage: (volts: Double, at: Instant)?
  /// The scaling reported by the ECUs on this connection.
  private(set) var scales = Scales()
  /// The last polled speeds of motor, vehicle and engine.
  private(set) var speeds = Motion.PolledSpeeds()
  private(set) var status = DeviceStatus?.none
  private(set) var fault: String?
  /// The name of the vehicle as last published, and as last reported in an event.
  private var (vehicle, reportedVehicle) = (String?.none, String?.none)
  private var timeouts = 0
  private var badReplies = 0
  private let actions: [Action]
  private let signals: [CustomSignal]
  /// The configured overrides of known properties.
  private let overrides: PropertyOverrides

  /// The states of a device of this kind, as published.
  enum DeviceStatus: String {
    /// There is no link.
    case waiting
    /// The adapter is being initialised.
    case starting
    /// The vehicle responds.
    case polling
    /// The adapter works but the vehicle does not respond, and the voltage does not show why.
    case carSilent = "car-silent"
    /// The vehicle does not respond, and its battery is not being charged.
    case carAsleep = "car-asleep"
    /// The vehicle responds but is not in use: polling is paused.
    case parked
    /// The adapter is not connected to a vehicle.
    case noCar = "no-car"
    /// Polling is paused, and the adapter is in low power mode.
    case adapterAsleep = "adapter-asleep"
    /// The adapter does not work, or its replies are unusable.
    case degraded
  }

  /// How many of the requested PIDs a response contained.
  enum Completeness { case all, several, one, none }

  /// The requests, with the positions of their properties in the schema.
  struct PlacedRequests {
    /// The rows of the fast request (FastPoll.swift); empty if it is a data record.
    let fastRows: [PollRequest.Row]
    let requests: [PollRequest]
  }

  init(actions: [Action], signals: [CustomSignal], overrides: PropertyOverrides, voltageProperty: String?) {
    (self.actions, self.signals, self.overrides, self.voltageProperty) = (actions, signals, overrides, voltageProperty)
  }

  // MARK: Schema

  private static let signOfUseNames = ["rpm", "rpm-2", "speed", "charging", "ignition"]

  /// Sets the vehicle's properties: those of the BMS data record, of the fast request and of the other requests. `period` is the poll
  /// period at the configured rate.
  mutating func placeProperties(
    hasBatteryRecord: Bool, fast: RequestLayout?, _ layouts: [RequestLayout], period: Nanoseconds, isDetected: Bool = false
  ) -> PlacedRequests {
    var properties = hasBatteryRecord ? BMSRecord.properties(freshFor: DeviceProperty.freshFor(period)) : []
    var names = Set(properties.map(\.name) + DeviceProperty.names)
    let customNames = Set(signals.map(\.name))
    /// Adds the properties of a request to the schema, and returns its rows with their positions.
    func place(_ layout: RequestLayout, every requestPeriod: Nanoseconds) -> [PollRequest.Row] {
      // Fast requests are not sent more often than the configured rate.
      let period = layout.request.usesDeviceRate ? max(requestPeriod, period) : requestPeriod
      return layout.rows.compactMap { parameter, dataRow in
        let isPolled = layout.isCustom || !customNames.contains(dataRow.property.name) && overrides.polls(dataRow.property.name)
        guard isPolled, names.insert(dataRow.property.name).inserted else { return nil }
        var property = dataRow.property
        if case .fresh = property.lifetime { property.lifetime = .fresh(max(3 &* period, 2 * .second)) }
        properties.append(property)
        return PollRequest.Row(position: properties.count - 1, parameter: parameter, dataRow: dataRow)
      }
    }
    let fastRows = fast.map { place($0, every: $0.request.period) } ?? []
    let requests = layouts.compactMap { layout -> PollRequest? in
      let names = layout.rows.map(\.dataRow.property.name)
      let defaultPeriod = layout.request.period
      guard let period = layout.isCustom ? defaultPeriod : overrides.period(of: names, default: defaultPeriod) else { return nil }
      let priority = names.isEmpty ? layout.request.priority : overrides.priority(of: names)
      let rows = place(layout, every: period)
      // Another request has all of its properties.
      if rows.isEmpty, !names.isEmpty { return nil }
      return layout.request.placed(rows, every: period, priority)
    }
    vehiclePropertyCount = properties.count
    properties += DeviceProperty.properties(period: period)
    // `map` makes a copy without spare capacity.
    schema = Schema(properties: properties.map(\.self), actions: actions, isProvisional: !isDetected)
    signsOfUse =
      vehiclePropertyCount == 0
      ? [] : Self.signOfUseNames.compactMap { name in properties[..<vehiclePropertyCount].firstIndex { $0.name == name } }
    voltagePosition = voltageProperty.flatMap { name in properties[..<vehiclePropertyCount].firstIndex { $0.name == name } }
    absences = [Absence](repeating: .none, count: properties.count)
    return PlacedRequests(fastRows: fastRows, requests: requests)
  }

  /// Publishes the schema. Call it before any value is added to `effects`, because it changes the positions of properties.
  mutating func declare(
    hasBatteryRecord: Bool, fast: RequestLayout?, _ layouts: [RequestLayout], period: Nanoseconds, of ecus: [ECUDiscovery.ECU],
    _ effects: inout Effects
  ) -> PlacedRequests {
    assert(effects.readings.isEmpty)
    scales = Scales(of: ecus)
    let before = schema
    let placed = placeProperties(hasBatteryRecord: hasBatteryRecord, fast: fast, layouts, period: period, isDetected: true)
    if schema != before { effects.append(.declare(schema)) }
    if let voltageProperty, voltagePosition == nil {
      effects.append(.note("this vehicle has no property \(voltageProperty) (voltage-property): its 12 V battery is not monitored"))
    }
    return placed
  }

  /// Whether the vehicle has a property that shows whether it is in use.
  var hasSignsOfUse: Bool { !signsOfUse.isEmpty }

  /// The positions of the properties that show whether the vehicle is in use, and of the one with the voltage of its 12 V battery.
  var usePositions: Set<Int> { Set(signsOfUse + (voltagePosition.map { [$0] } ?? [])) }

  /// The positions of the vehicle's properties that become absent when it does not respond.
  var freshPositions: [Int] { (0..<vehiclePropertyCount).filter { schema.properties[$0].lifetime != .retained } }

  func name(at position: Int) -> String { schema.properties[position].name }

  /// The position in the schema of a property of the adapter or the polling.
  private func position(_ property: DeviceProperty) -> Int { vehiclePropertyCount + property.rawValue }

  // MARK: Values

  func publish(_ property: DeviceProperty, _ value: Value, _ effects: inout Effects) { effects.publish(position(property), value) }
  func withdraw(_ property: DeviceProperty, _ reason: String, _ effects: inout Effects) { effects.withdraw(position(property), reason) }

  /// Publishes the vehicle. `reportVehicle` reports it once it has responded.
  mutating func publish(vehicle name: String, _ effects: inout Effects) {
    publish(.vehicle, .string(name), &effects)
    vehicle = name
  }

  /// Reports the published vehicle as an event if it differs from the previous one.
  mutating func reportVehicle(_ effects: inout Effects) {
    guard let vehicle, vehicle != reportedVehicle else { return }
    effects.append(.event(name: "vehicle", text: "vehicle detected: \(vehicle)"))
    reportedVehicle = vehicle
  }

  /// Publishes the value of a property, or its absence.
  mutating func publish(_ decoded: Decoded, at position: Int, at now: Instant, _ effects: inout Effects) {
    switch decoded {
    case .value(let value):
      absences[position] = .none
      effects.publish(position, value)
      if signsOfUse.contains(position), value == .bool(true) || value.number.map({ $0 != 0 }) ?? false { inUseAt = now }
      if position == voltagePosition { batteryVoltage = value.number.map { ($0, now) } }
    case .absent(let absence):
      if absences[position] != absence { effects.withdraw(position, absence.message) }
      absences[position] = absence
    }
  }

  /// Publishes BMS data record 0x01.
  mutating func publishRecord(_ reader: ReplyReader, _ range: Range<Int>, at now: Instant, _ effects: inout Effects) {
    speeds.beginRecord()
    reader.payload.withUnsafeBufferPointer { payload in
      BMSRecord.read(UnsafeBufferPointer(rebasing: payload[range])) { position, decoded in
        publish(decoded, at: position, at: now, &effects)
        guard BMSRecord.motorSpeeds.contains(position), case .value(let value) = decoded, let speed = value.number else { return }
        speeds.record(motor: speed, at: now)
      }
    }
  }

  /// Publishes the payload in `range`: a data record as a whole, or each PID with the ECU's scaling. Returns how many of the requested
  /// PIDs it contained; `none` means that the reply is invalid.
  mutating func publish(
    _ rows: [PollRequest.Row], _ parameters: [PollRequest.Parameter], _ reader: ReplyReader, _ range: Range<Int>, from source: UInt32?,
    at now: Instant, _ effects: inout Effects
  ) -> Completeness {
    reader.payload.withUnsafeBufferPointer { payload in
      let data = UnsafeBufferPointer(rebasing: payload[range])
      guard !parameters.isEmpty else {
        for row in rows { publish(row.dataRow.read(data), at: row.position, at: now, &effects) }
        return .all
      }
      guard let end = ReplyReader.end(of: parameters, in: data, hasNoHeaders: source == nil) else { return .none }
      var (position, found) = (0, 0)
      while position < end, let parameter = parameters.first(where: { $0.number == data[position] }) {
        let part = UnsafeBufferPointer(rebasing: data[position + 1..<position + 1 + parameter.length])
        for row in rows where row.parameter == parameter.number {
          publish(row.dataRow.value(part, scales, from: source), at: row.position, at: now, &effects)
        }
        speeds.record(parameter.number, part, at: now)
        position += 1 + parameter.length
        found += 1
      }
      return found >= parameters.count ? .all : found > 1 ? .several : .one
    }
  }

  /// Stores the scaling reported by each ECU.
  mutating func recordScales(_ reader: ReplyReader) {
    for message in reader.messages {
      let bytes = Array(reader.bytes(of: message))
      _ = StandardParameter.split(bytes[...]) { number, data in
        bytes[data].withUnsafeBufferPointer { scales.record(number, $0, from: message.source) }
      }
    }
  }

  /// Resets the scaling, because another vehicle may respond now.
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

  mutating func publish(status: DeviceStatus, _ effects: inout Effects) {
    self.status = status
    effects.append(.status(status.rawValue))
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
