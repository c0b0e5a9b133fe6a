// Publishes values with every response, and statistics once per second. An absent value is published once, not with every response,
// and values outside of their range are not published.

extension VESCMachine {
  /// The known geometry: the configuration first, then the VESC.
  var geometry: VESCGeometry { options.geometry.completed(by: limits.geometry) }

  mutating func publish(_ firmware: VESCFirmware, _ effects: inout Effects) {
    publish(.firmware, .string(firmware.version), &effects)
    if let hardware = firmware.hardware { publish(.hardware, .string(hardware), &effects) }
  }

  mutating func publishValues(_ command: VESCCommand, at now: Instant, _ effects: inout Effects) {
    // If the VESC sums up all VESCs of the board, values of a single one are not mixed with the sums.
    let isWhole = command != .values || talk.setup == .lacking
    publish(.batteryVoltage, .voltage, 10, &effects)
    publish(.duty, .duty, 10, &effects)
    publishSpeed(isWhole: isWhole, &effects)
    if isWhole {
      publish(.motorCurrent, .motorCurrent, 100, &effects)
      publish(.batteryCurrent, .inputCurrent, 100, &effects)
      if let voltage = values[.voltage], let current = values[.inputCurrent] {
        publish(.batteryPower, .float(Double(voltage * current / 100) / 10), &effects)
      }
      publishBattery(&effects)
    }
    publishFault(isNewsOnly: command == .selectSetup, &effects)
    if command != .selectSetup { publishDetails(command, isWhole: isWhole, at: now, &effects) }
  }

  private mutating func publishDetails(_ command: VESCCommand, isWhole: Bool, at now: Instant, _ effects: inout Effects) {
    publish(.connected, .bool(true), &effects)
    publish(.mosfetTemperature, .mosfetTemperature, 10, &effects)
    publish(.motorTemperature, .motorTemperature, 10, &effects)
    if isWhole {
      publish(.chargeUsed, .chargeUsed, 10_000, &effects)
      publish(.chargeRegenerated, .chargeRegenerated, 10_000, &effects)
      publish(.energyUsed, .energyUsed, 10_000, &effects)
      publish(.energyRegenerated, .energyRegenerated, 10_000, &effects)
    }
    if let controller = values[.controller] { publish(.controllerID, .int(controller), &effects) }
    if command == .values {
      publish(.mosfetTemperature1, .mosfetTemperature1, 10, &effects)
      publish(.mosfetTemperature2, .mosfetTemperature2, 10, &effects)
      publish(.mosfetTemperature3, .mosfetTemperature3, 10, &effects)
      publish(.timedOut, values[.status].map { .bool($0 & 1 != 0) }, &effects)
      publish(.killSwitch, values[.status].map { .bool($0 & 2 != 0) }, &effects)
    }
    if command == .setup || talk.setup == .lacking {
      publish(.vescs, values[.vescs].map(Value.int), &effects)
      publish(.energyLeft, .energyLeft, 1000, &effects)
      publish(.uptime, values[.uptime].map { .int($0 / 1000) }, &effects)
    }
    publishWay(command, at: now, &effects)
    sayMode(&effects)
  }

  /// A configured geometry overrides the VESC's own speed.
  private mutating func publishSpeed(isWhole: Bool, _ effects: inout Effects) {
    guard let erpm = values[.erpm] else { return }
    let geometry = geometry
    publish(.erpm, .int(erpm), &effects)
    if let polePairs = geometry.polePairs {
      publish(.rpm, .int(Int((Double(erpm) / polePairs).rounded())), &effects)
    } else {
      withdraw(.rpm, unknown: "pole-pairs", &effects)
    }
    if let metres = geometry.metres, !options.geometry.isEmpty || values[.speed] == nil {
      publish(.speed, .float((Double(erpm) * metres * 6).rounded() / 100), &effects)
    } else if let speed = values[.speed] {
      publish(.speed, .float(Double(speed * 36 / 100) / 100), &effects)
    } else if isWhole {
      withdraw(.speed, unknown: geometry.missing, &effects)
    }
  }

  private mutating func publishBattery(_ effects: inout Effects) {
    if let cells = options.cells {
      guard let voltage = values[.voltage] else { return }
      publish(.battery, .float(Self.charge(decivolts: voltage, cells: cells)), &effects)
    } else if let battery = values[.battery] {
      publish(.battery, .float(Double(min(max(battery, 0), 1000)) / 10), &effects)
    } else {
      withdraw(.battery, unknown: "cells", &effects)
    }
  }

  /// Torq's rule for a cell: 3.1 V is empty, 4.0 V is full.
  static func charge(decivolts: Int, cells: Int) -> Double {
    let part = (Double(decivolts) / 10 / Double(cells) - 3.1) / 0.9
    return (min(max(part, 0), 1) * 1000).rounded() / 10
  }

  private mutating func publishFault(isNewsOnly: Bool, _ effects: inout Effects) {
    guard let code = values[.fault], code != faultCode || !isNewsOnly else { return }
    if code != faultCode { faultMessage = code == 0 ? nil : "the VESC reports \(VESCFault.name(of: code))" }
    faultCode = code
    publish(.faultCode, .string(VESCFault.name(of: code)), &effects)
  }

  // MARK: Statistics

  mutating func publishMeasurements(at now: Instant, _ effects: inout Effects) {
    counters.published = .min
    counters.measured = now
    publishCounters(at: now, &effects)
    let summary = timing.summary(at: now)
    if let rate = summary.rate { publish(.pollRate, .float((rate * 10).rounded() / 10), &effects) }
    publish(summary.roundTrip, .roundTrip, .roundTripP99, &effects)
    publish(summary.lateness, .lateness, .latenessP99, &effects)
  }

  /// Counters that do not depend on responses; at most once per second.
  mutating func publishCounters(at now: Instant, _ effects: inout Effects) {
    guard Counters.isOld(counters.published, at: now) else { return }
    counters.published = now
    publish(.polls, .int(counters.polls), &effects)
    publish(.missed, .int(pace.missed), &effects)
    publish(.timeouts, .int(counters.timeouts), &effects)
    publish(.badFrames, .int(reader.runsOfNoise &+ counters.badAnswers), &effects)
  }

  private mutating func publish(_ percentiles: Timing.Percentiles?, _ median: VESCSignal, _ p99: VESCSignal, _ effects: inout Effects) {
    guard let percentiles else { return }
    publish(median, .float(Double(percentiles.median / .microsecond) / 1000), &effects)
    publish(p99, .float(Double(percentiles.p99 / .microsecond) / 1000), &effects)
  }

  // MARK: One property

  /// A field in its unit, if the response contains it.
  private mutating func publish(_ signal: VESCSignal, _ field: VESCField, _ scale: Double, _ effects: inout Effects) {
    publish(signal, values[field].map { .float(Double($0) / scale) }, &effects)
  }

  mutating func publish(_ signal: VESCSignal, _ value: Value?, _ effects: inout Effects) {
    guard let value else { return withdraw(signal.rawValue, "not reported by this firmware", &effects) }
    if let range = ranges[signal.rawValue], let number = value.number, !range.contains(number) {
      return withdraw(signal.rawValue, "implausible value from the VESC", &effects)
    }
    said[signal.rawValue] = nil
    isUnknown[signal.rawValue] = false
    effects.publish(signal.rawValue, value)
  }

  /// The geometry is incomplete; no text is formatted per response.
  mutating func withdraw(_ signal: VESCSignal, unknown keys: @autoclosure () -> String, _ effects: inout Effects) {
    guard !isUnknown[signal.rawValue] else { return }
    withdraw(signal.rawValue, "not reported by the VESC: set \(keys()) in the configuration", &effects)
    isUnknown[signal.rawValue] = true
  }

  /// The reasons may have changed, so they are published again.
  mutating func forgetWhatWasSaid() {
    for index in said.indices { (said[index], isUnknown[index]) = (nil, false) }
  }

  mutating func withdraw(_ position: Int, _ reason: String, _ effects: inout Effects) {
    guard said.indices.contains(position), said[position] != reason else { return }
    said[position] = reason
    isUnknown[position] = false
    effects.withdraw(position, reason)
  }
}
