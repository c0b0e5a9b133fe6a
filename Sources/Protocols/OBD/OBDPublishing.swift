// Publishing of values: the fields of each response, and the polling statistics once a second. An absence is published once.

extension OBDMachine {
  mutating func publishPage(_ range: Range<Int>, _ effects: inout Effects) {
    let payload = reader.payload
    polled.motor = nil
    payload.withUnsafeBufferPointer { payload in
      BMSRecord.read(UnsafeBufferPointer(rebasing: payload[range])) { signal, decoded in
        publish(decoded, at: signal.rawValue, &effects)
        guard signal == .rpm || signal == .rpm2, case .value(let value) = decoded, let speed = value.number else { return }
        polled.motor = Motion.Polled.Speed(speed: max(abs(speed), polled.motor?.speed ?? 0), at: lastTurn)
      }
    }
  }

  /// Publishes the value of a property, or its absence.
  mutating func publish(_ decoded: Decoded, at position: Int, _ effects: inout Effects) {
    switch decoded {
    case .value(let value):
      said[position] = .none
      effects.publish(position, value)
      if care != nil, signsOfUse.contains(position), value == .bool(true) || value.number.map({ $0 != 0 }) ?? false {
        let now = lastTurn
        care?.isUsed(at: now)
      }
    case .absent(let absence):
      if said[position] != absence { effects.withdraw(position, absence.message) }
      said[position] = absence
    }
  }

  /// Withdraws values and statistics because the vehicle does not respond.
  mutating func withdrawVehicle(_ reason: String, _ effects: inout Effects) {
    for position in livelyProperties { effects.withdraw(position, reason) }
    for signal in Signal.measured { withdraw(signal, reason, &effects) }
    forgetMeasurements()
  }

  mutating func publishMeasurements(at now: Instant, _ effects: inout Effects) {
    counters.published = .min
    publishCounters(at: now, &effects)
    let summary = timing.summary(at: now)
    if let rate = summary.rate { publish(.pollRate, .float((rate * 10).rounded() / 10), &effects) }
    publish(summary.roundTrip, .roundTrip, .roundTripP99, &effects)
    publish(summary.lateness, .lateness, .latenessP99, &effects)
  }

  /// The counters, published at most once a second, whether or not the vehicle responds.
  mutating func publishCounters(at now: Instant, _ effects: inout Effects) {
    guard counters.isOld(at: now) else { return }
    counters.published = now
    publish(.polls, .int(counters.polls), &effects)
    publish(.missed, .int(pace.missed), &effects)
  }

  /// The report of target and actual rates, the fast request first.
  func ratesReport(at now: Instant) -> Report {
    let named = { (rows: [Inquiry.Row]) in rows.map { schema.properties[$0.position].name }.joined(separator: " ") }
    let fast = request.isDiscovery ? "supported PIDs" : request.parameters.isEmpty ? "BMS data" : named(primary)
    let summary = timing.summary(at: now)
    var rows = [
      [
        request.rawValue, request.target.text,
        pace.period > 0 ? Self.hertz(1e9 / Double(pace.period)) : "back to back",
        summary.rate.map(Self.hertz) ?? "", summary.roundTrip.map { Value.text(Self.milliseconds($0.median)) } ?? "", fast,
      ]
    ]
    for inquiry in timetable.inquiries where !inquiry.rows.isEmpty {
      let achieved: String
      switch inquiry.standing {
      case .refused(let message, _): achieved = message
      case .unknown: achieved = inquiry.misses > 0 ? "no response" : ""
      case .answered: achieved = inquiry.misses > 0 ? "no response" : inquiry.rate(at: now).map(Self.hertz) ?? ""
      }
      rows.append([
        String(decoding: hexText(inquiry.request), as: UTF8.self), inquiry.target.text,
        Self.hertz(1e9 / Double(max(inquiry.period, 1))), achieved,
        inquiry.samples > 0 ? Value.text(Self.milliseconds(inquiry.cost)) : "", named(inquiry.rows),
      ])
    }
    return Report(columns: ["request", "ecu", "target Hz", "actual Hz", "ms", "properties"], rows: rows)
  }

  private static func hertz(_ rate: Double) -> String { Value.text((rate * 100).rounded() / 100) }

  private func publish(_ percentiles: Timing.Percentiles?, _ median: Signal, _ p99: Signal, _ effects: inout Effects) {
    guard let percentiles else { return }
    publish(median, .float(Self.milliseconds(percentiles.median)), &effects)
    publish(p99, .float(Self.milliseconds(percentiles.p99)), &effects)
  }

  /// Milliseconds with microsecond resolution.
  private static func milliseconds(_ time: Nanoseconds) -> Double { Double(time / .microsecond) / 1000 }
}
