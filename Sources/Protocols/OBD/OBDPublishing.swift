// Publishing of values: the fields of each response, and the polling statistics once a second. An absence is published once.

extension OBDMachine {
  /// Withdraws values and statistics because the vehicle does not respond.
  mutating func withdrawVehicle(_ reason: String, _ effects: inout Effects) {
    values.withdrawVehicle(reason, &effects)
    timing.forget()
  }

  mutating func publishMeasurements(at now: Instant, _ effects: inout Effects) {
    counters.published = .min
    publishCounters(at: now, &effects)
    let summary = timing.summary(at: now)
    if let rate = summary.rate { values.publish(.pollRate, .float((rate * 10).rounded() / 10), &effects) }
    publish(summary.roundTrip, .roundTrip, .roundTripP99, &effects)
    publish(summary.lateness, .lateness, .latenessP99, &effects)
  }

  /// The counters, published at most once a second, whether or not the vehicle responds.
  mutating func publishCounters(at now: Instant, _ effects: inout Effects) {
    guard counters.isOld(at: now) else { return }
    counters.published = now
    values.publish(.polls, .int(counters.polls), &effects)
    values.publish(.missed, .int(pace.missed), &effects)
  }

  /// The report of target and actual rates, the fast request first.
  func ratesReport(at now: Instant) -> Report {
    let named = { (rows: [PollRequest.Row]) in rows.map { values.name(at: $0.position) }.joined(separator: " ") }
    let fast = request.isDiscovery ? "supported PIDs" : request.parameters.isEmpty ? "BMS data" : named(primary)
    let summary = timing.summary(at: now)
    var rows = [
      [
        request.rawValue, request.target.text,
        pace.period > 0 ? Self.hertz(1e9 / Double(pace.period)) : "back to back",
        summary.rate.map(Self.hertz) ?? "", summary.roundTrip.map { Value.text(Self.milliseconds($0.median)) } ?? "", fast,
      ]
    ]
    for request in requestQueue.requests where !request.rows.isEmpty {
      let achieved: String
      switch request.standing {
      case .refused(let message, _): achieved = message
      case .unknown: achieved = request.misses > 0 ? "no response" : ""
      case .answered: achieved = request.misses > 0 ? "no response" : request.rate(at: now).map(Self.hertz) ?? ""
      }
      rows.append([
        String(decoding: hexText(request.request), as: UTF8.self), request.target.text,
        Self.hertz(1e9 / Double(max(request.period, 1))), achieved,
        request.samples > 0 ? Value.text(Self.milliseconds(request.cost)) : "", named(request.rows),
      ])
    }
    return Report(columns: ["request", "ecu", "target Hz", "actual Hz", "ms", "properties"], rows: rows)
  }

  private static func hertz(_ rate: Double) -> String { Value.text((rate * 100).rounded() / 100) }

  private func publish(_ percentiles: Timing.Percentiles?, _ median: Signal, _ p99: Signal, _ effects: inout Effects) {
    guard let percentiles else { return }
    values.publish(median, .float(Self.milliseconds(percentiles.median)), &effects)
    values.publish(p99, .float(Self.milliseconds(percentiles.p99)), &effects)
  }

  /// Milliseconds with microsecond resolution.
  private static func milliseconds(_ time: Nanoseconds) -> Double { Double(time / .microsecond) / 1000 }
}
