// The published values of a weather device and their expiry, the action `refresh`, and the device's state. A restored response is published
// with its age according to the wall clock; if the wall clock is implausible, the response is not published.

extension WeatherMachine {
  // MARK: Published values

  mutating func start(_ restored: [String: [UInt8]], _ wall: WallTime, at now: Instant, _ effects: inout Effects) {
    switch settings.site {
    case .coordinates: effects.withdraw(WeatherProperty.place.rawValue, "not configured by name")
    case .place(let configuredName):
      effects.withdraw(WeatherProperty.place.rawValue, "not resolved yet")
      if let found = WeatherStore.place(restored[WeatherStore.placeKey], for: configuredName) {
        coordinates = found.coordinates
        publish(place: found.name, configuredName, &effects)
      }
    }
    var next = now
    if let stored = WeatherStore.answer(restored[WeatherStore.answerKey], for: settings.site.key),
      let age = age(of: stored.time, at: wall)
    {
      publish(restored: stored.report, from: stored.time, age: age, at: now, &effects)
      next = now &+ max(0, settings.interval - age)
      setState("live", nil, &effects)
    } else {
      for property in WeatherProperty.inResponse { effects.withdraw(property.rawValue, "no response yet") }
      effects.withdraw(WeatherProperty.lastUpdate.rawValue, "no response yet")
      setState("waiting", nil, &effects)
    }
    state = .idle(until: next)
  }

  /// The age of a response; nil if it is too old, or in the future because the clock was set back.
  func age(of time: Int64, at wall: WallTime) -> Nanoseconds? {
    let (age, overflow) = wall.microseconds.subtractingReportingOverflow(time)
    guard !overflow, (0..<settings.freshFor / .microsecond).contains(age) else { return nil }
    return age * .microsecond
  }

  mutating func updateClock(_ wall: WallTime, at now: Instant, _ effects: inout Effects) {
    if let unstoredReport {
      self.unstoredReport = nil
      effects.publish(WeatherProperty.lastUpdate.rawValue, .string(WallTime.isoTime(wall.microseconds)))
      effects.append(.store(key: WeatherStore.answerKey, WeatherStore.bytes(of: unstoredReport, at: wall, for: settings.site.key)))
    } else if let (report, time) = published?.restored {
      if let age = age(of: time, at: wall) { return publish(restored: report, from: time, age: age, at: now, &effects) }
      withdraw("the clock was set: the age of the last response is unknown", &effects)
      setState("unknown", fault, &effects)
    }
  }

  private mutating func publish(
    restored report: WeatherReport, from time: Int64, age: Nanoseconds, at now: Instant, _ effects: inout Effects
  ) {
    publish(report, age: age, at: now, &effects)
    published?.restored = (report, time)
    effects.publish(WeatherProperty.lastUpdate.rawValue, .string(WallTime.isoTime(time)), age: age)
  }

  mutating func publish(_ report: WeatherReport, age: Nanoseconds = 0, at now: Instant, _ effects: inout Effects) {
    published = (now &+ (settings.freshFor - age), nil)
    for property in WeatherProperty.inResponse {
      switch report[property] {
      case .value(let value)?: effects.publish(property.rawValue, value, age: age)
      case .absent(let reason)?: effects.withdraw(property.rawValue, reason)
      case nil: break
      }
    }
  }

  mutating func withdraw(_ reason: String, _ effects: inout Effects) {
    published = nil
    for property in WeatherProperty.inResponse { effects.withdraw(property.rawValue, reason) }
  }

  func publish(place name: String, _ configuredName: String, _ effects: inout Effects) {
    effects.publish(WeatherProperty.place.rawValue, .string(name.isEmpty ? configuredName : name))
  }

  mutating func setState(_ name: String, _ fault: String?, _ effects: inout Effects) {
    self.fault = fault
    effects.append(.status(name))
    effects.append(.fault(fault))
  }

  // MARK: Commands

  mutating func refresh(_ id: CommandID, at now: Instant, _ effects: inout Effects) {
    switch state {
    case .requesting: waiting.append(id)
    case .stopped: effects.append(.complete(id, .failure(.notConnected("the daemon is stopping"))))
    case .idle:
      let wait = earliestRequest(after: now) &- now
      guard wait == 0 else {
        let message = "request rate limited: try again in \((wait - 1) / .second + 1) s"
        return effects.append(.complete(id, .failure(.refused(code: .rateLimited, message))))
      }
      waiting.append(id)
      sendRequest(began: now, at: now, &effects)
    }
  }

  mutating func finish(_ result: Result<Report, CommandError>, _ effects: inout Effects) {
    for id in waiting { effects.append(.complete(id, result)) }
    waiting = []
  }

  mutating func stop(_ effects: inout Effects) {
    state = .stopped
    finish(.failure(.notConnected("the device is being stopped")), &effects)
    withdraw("the daemon is stopping", &effects)
    setState("stopped", fault, &effects)
    effects.append(.stopped)
  }
}
