// The values of the board: decodes the responses to polls, publishes them, and accumulates the distance. The configured drivetrain
// overrides the VESC's own.

struct VESCTelemetry: Sendable {
  private let configured: VESCDrivetrain
  /// Battery cells in series, if configured.
  private let cells: Int?
  private(set) var values = VESCValues()
  private(set) var odometer = VESCOdometer()
  /// The drivetrain that the VESC reports.
  private var reported: VESCDrivetrain?
  private var faultCode = 0
  /// The fault that the VESC reports, as a message.
  private(set) var fault: String?

  init(_ options: VESCOptions) { (configured, cells) = (options.drivetrain, options.cells) }

  /// The known drivetrain: the configuration first, then the VESC.
  var drivetrain: VESCDrivetrain { configured.completed(by: reported) }

  /// Stores the drivetrain that the VESC reports; returns whether it has changed.
  mutating func setReported(_ drivetrain: VESCDrivetrain) -> Bool {
    defer { reported = drivetrain }
    return reported != drivetrain
  }

  /// Discards what the last VESC reported (drivetrain, fault, counters), because another VESC may respond next.
  mutating func forgetVESC() {
    (reported, faultCode, fault) = (nil, 0, nil)
    odometer.forgetCounters()
  }

  mutating func restore(_ values: [String: [UInt8]], _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    odometer.restore(values, &publisher, &effects)
  }

  mutating func stored(_ key: String, _ failure: String?, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    odometer.stored(key, failure, &publisher, &effects)
  }

  /// Stores the distance immediately.
  mutating func store(_ effects: inout Effects) { odometer.store(&effects) }

  func publish(_ firmware: VESCFirmware, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    publisher.publish(.firmware, .string(firmware.version), &effects)
    if let hardware = firmware.hardware { publisher.publish(.hardware, .string(hardware), &effects) }
  }

  /// The content of a response.
  enum Content { case invalid, values, valuesAfterRestart }

  /// Decodes the payload of a response after its ID, and publishes its values. `lacksSetupValues`: the firmware does not support
  /// GET_VALUES_SETUP, so it reports only one motor.
  mutating func read(
    _ command: VESCCommand, _ payload: ArraySlice<UInt8>, lacksSetupValues: Bool, at now: Instant, _ publisher: inout VESCPublisher,
    _ effects: inout Effects
  ) -> Content {
    guard values.read(command, payload) else { return .invalid }
    // If the VESC reports sums over all VESCs of the board, do not mix them with the values of a single VESC.
    let isWholeBoard = command != .values || lacksSetupValues
    publish(.batteryVoltage, .voltage, 10, &publisher, &effects)
    publish(.duty, .duty, 10, &publisher, &effects)
    publishSpeed(isWholeBoard: isWholeBoard, &publisher, &effects)
    if isWholeBoard {
      publish(.motorCurrent, .motorCurrent, 100, &publisher, &effects)
      publish(.batteryCurrent, .inputCurrent, 100, &publisher, &effects)
      if let voltage = values[.voltage], let current = values[.inputCurrent] {
        publisher.publish(.batteryPower, .float(Double(voltage * current / 100) / 10), &effects)
      }
      publishBattery(&publisher, &effects)
    }
    publishFault(onlyIfChanged: command == .selectedSetupValues, &publisher, &effects)
    if command == .selectedSetupValues { return .values }
    publishDetails(command, isWholeBoard: isWholeBoard, lacksSetupValues: lacksSetupValues, &publisher, &effects)
    let hasRestarted = odometer.read(values, drivetrain, lacksSetupValues: lacksSetupValues, at: now, &publisher, &effects)
    return hasRestarted ? .valuesAfterRestart : .values
  }

  private func publishDetails(
    _ command: VESCCommand, isWholeBoard: Bool, lacksSetupValues: Bool, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    publisher.publish(.connected, .bool(true), &effects)
    publish(.mosfetTemperature, .mosfetTemperature, 10, &publisher, &effects)
    publish(.motorTemperature, .motorTemperature, 10, &publisher, &effects)
    if isWholeBoard {
      publish(.chargeUsed, .chargeUsed, 10_000, &publisher, &effects)
      publish(.chargeRegenerated, .chargeRegenerated, 10_000, &publisher, &effects)
      publish(.energyUsed, .energyUsed, 10_000, &publisher, &effects)
      publish(.energyRegenerated, .energyRegenerated, 10_000, &publisher, &effects)
    }
    if let controller = values[.controller] { publisher.publish(.controllerID, .int(controller), &effects) }
    if command == .values {
      publish(.mosfetTemperature1, .mosfetTemperature1, 10, &publisher, &effects)
      publish(.mosfetTemperature2, .mosfetTemperature2, 10, &publisher, &effects)
      publish(.mosfetTemperature3, .mosfetTemperature3, 10, &publisher, &effects)
      publisher.publish(.timedOut, values[.status].map { .bool($0 & 1 != 0) }, &effects)
      publisher.publish(.killSwitch, values[.status].map { .bool($0 & 2 != 0) }, &effects)
    }
    if command == .setupValues || lacksSetupValues {
      publisher.publish(.vescs, values[.vescs].map(Value.int), &effects)
      publish(.energyLeft, .energyLeft, 1000, &publisher, &effects)
      publisher.publish(.uptime, values[.uptime].map { .int($0 / 1000) }, &effects)
    }
  }

  private func publishSpeed(isWholeBoard: Bool, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard let erpm = values[.erpm] else { return }
    let drivetrain = drivetrain
    publisher.publish(.erpm, .int(erpm), &effects)
    if let polePairs = drivetrain.polePairs {
      publisher.publish(.rpm, .int(Int((Double(erpm) / polePairs).rounded())), &effects)
    } else {
      publisher.withdraw(.rpm, unconfigured: "pole-pairs", &effects)
    }
    if let metres = drivetrain.metresPerElectricalRevolution, !configured.isEmpty || values[.speed] == nil {
      publisher.publish(.speed, .float((Double(erpm) * metres * 6).rounded() / 100), &effects)
    } else if let speed = values[.speed] {
      publisher.publish(.speed, .float(Double(speed * 36 / 100) / 100), &effects)
    } else if isWholeBoard {
      publisher.withdraw(.speed, unconfigured: drivetrain.missing, &effects)
    }
  }

  private func publishBattery(_ publisher: inout VESCPublisher, _ effects: inout Effects) {
    if let cells {
      guard let voltage = values[.voltage] else { return }
      publisher.publish(.battery, .float(Self.charge(decivolts: voltage, cells: cells)), &effects)
    } else if let battery = values[.battery] {
      publisher.publish(.battery, .float(Double(min(max(battery, 0), 1000)) / 10), &effects)
    } else {
      publisher.withdraw(.battery, unconfigured: "cells", &effects)
    }
  }

  /// The state of charge in % from the pack voltage in 0.1 V. Source: ProjectTORQ.ino: a cell is empty at 3.1 V and full at 4.0 V.
  static func charge(decivolts: Int, cells: Int) -> Double {
    let part = (Double(decivolts) / 10 / Double(cells) - 3.1) / 0.9
    return (min(max(part, 0), 1) * 1000).rounded() / 10
  }

  private mutating func publishFault(onlyIfChanged: Bool, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard let code = values[.fault], code != faultCode || !onlyIfChanged else { return }
    if code != faultCode { fault = code == 0 ? nil : "the VESC reports \(VESCFault.name(of: code))" }
    faultCode = code
    publisher.publish(.faultCode, .string(VESCFault.name(of: code)), &effects)
  }

  /// Publishes a field in the unit of its property, if the response contains it.
  private func publish(
    _ property: VESCProperty, _ field: VESCField, _ scale: Double, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    publisher.publish(property, values[field].map { .float(Double($0) / scale) }, &effects)
  }
}
