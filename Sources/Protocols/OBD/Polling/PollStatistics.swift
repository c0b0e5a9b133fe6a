// The rates, round-trip times and lateness of the fast request, which is polled at the device's rate, and the number of polls. Published
// once a second.

struct PollStatistics: Sendable {
  private var timing: Timing
  private var polls = 0
  /// The time at which the counters were last published, or `.min` if they are due at once.
  private var published: Instant = .min

  init(period: Nanoseconds) { timing = Timing(period: period) }

  mutating func changePeriod(to period: Nanoseconds) { timing = Timing(period: period) }
  mutating func reset() { timing.removeAll() }
  mutating func recordSent() { polls &+= 1 }

  mutating func recordResponse(at now: Instant, roundTrip: Nanoseconds, lateness: Nanoseconds?) {
    timing.add(answered: now, roundTrip: roundTrip, lateness: lateness)
  }

  /// Whether the counters were published at least a second ago, or never.
  func isDue(at now: Instant) -> Bool { published == .min || now &- published >= .second }

  mutating func publish(missed: Int, at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    published = .min
    publishCounters(missed: missed, at: now, values, &effects)
    let summary = timing.summary(at: now)
    if let rate = summary.rate { values.publish(.pollRate, .float((rate * 10).rounded() / 10), &effects) }
    publish(summary.roundTrip, .roundTrip, .roundTripP99, values, &effects)
    publish(summary.lateness, .lateness, .latenessP99, values, &effects)
  }

  /// Publishes the counters at most once a second, whether or not the vehicle responds.
  mutating func publishCounters(missed: Int, at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    guard isDue(at: now) else { return }
    published = now
    values.publish(.polls, .int(polls), &effects)
    values.publish(.missed, .int(missed), &effects)
  }

  private func publish(
    _ percentiles: Timing.Percentiles?, _ median: DeviceProperty, _ p99: DeviceProperty, _ values: ValueTable, _ effects: inout Effects
  ) {
    guard let percentiles else { return }
    values.publish(median, .float(Self.milliseconds(percentiles.median)), &effects)
    values.publish(p99, .float(Self.milliseconds(percentiles.p99)), &effects)
  }

  /// The report of target and actual rates, with the fast request first.
  func report(_ fast: FastPoll, every period: Nanoseconds, _ queue: RequestQueue, _ values: ValueTable, at now: Instant) -> Report {
    let names = { (rows: [PollRequest.Row]) in rows.map { values.name(at: $0.position) }.joined(separator: " ") }
    let request = fast.request
    let fastNames = request.isDiscovery ? "supported PIDs" : request.isBMSRecord ? "BMS data" : names(fast.rows)
    let summary = timing.summary(at: now)
    var rows = [
      [
        request.rawValue, request.target.text,
        period > 0 ? Self.hertz(1e9 / Double(period)) : "back to back",
        summary.rate.map(Self.hertz) ?? "", summary.roundTrip.map { Value.text(Self.milliseconds($0.median)) } ?? "", fastNames,
      ]
    ]
    for request in queue.requests where !request.rows.isEmpty {
      let actualRate: String
      switch request.support {
      case .rejected(let message, _): actualRate = message
      case .unknown: actualRate = request.misses > 0 ? "no response" : ""
      case .answered: actualRate = request.misses > 0 ? "no response" : request.rate(at: now).map(Self.hertz) ?? ""
      }
      rows.append([
        String(decoding: hexText(request.request), as: UTF8.self), request.target.text,
        Self.hertz(1e9 / Double(max(request.period, 1))), actualRate,
        request.samples > 0 ? Value.text(Self.milliseconds(request.duration)) : "", names(request.rows),
      ])
    }
    return Report(columns: ["request", "ecu", "target Hz", "actual Hz", "ms", "properties"], rows: rows)
  }

  private static func hertz(_ rate: Double) -> String { Value.text((rate * 100).rounded() / 100) }

  /// Milliseconds with microsecond resolution.
  private static func milliseconds(_ time: Nanoseconds) -> Double { Double(time / .microsecond) / 1000 }
}
