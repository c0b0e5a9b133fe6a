// The `weather` machine: looks up its place once, then requests the weather every `interval`. At most one request is in flight.
// After failures it backs off, and shows the last values until they are stale. The last response is stored over a restart. The
// location is sent to the services only.
// Source: protocols of the mirror, §9; the service's fair-use limit of 10,000 calls per day.

/// Publishes the weather at one location.
public struct WeatherMachine: Machine {
  /// The state of the machine. Each case carries only what is valid in it.
  enum State: Sendable {
    /// The next request is due then.
    case resting(until: Instant)
    /// A request is in flight, for a round that started then.
    case asking(Question, RequestID, asked: Instant, began: Instant)
    /// Disconnected: no request until the device is connected again.
    case stopped
  }

  enum Question: Sendable {
    case place(String)
    case weather(Coordinates)
  }

  public let schema: Schema
  let settings: WeatherSettings
  var state = State.stopped
  /// The coordinates, once they are known.
  var point: Coordinates?
  var lastRequest: RequestID = 0
  /// When the services were last queried.
  var lastAsked: Instant?
  /// Rate limited until then.
  var limitedUntil: Instant?
  var failures = 0
  /// When the shown values expire; the response and its time, if it was restored from disk.
  var shown: (until: Instant, restored: (report: WeatherReport, time: Int64)?)?
  /// A response that waits for the wall-clock time.
  var unkept: WeatherReport?
  var waiting: [CommandID] = []
  var fault: String?

  static let refresh = Action("refresh", help: "Request the weather now; at most once a minute")
  private static let minPause: Nanoseconds = 60 * .second
  private static let maxPause: Nanoseconds = 15 * 60 * .second
  private static let hour: Nanoseconds = 3600 * .second
  /// The HTTP client replies to every request, but requests can queue there.
  private static let timeout: Nanoseconds = 120 * .second

  init(_ settings: WeatherSettings) {
    self.settings = settings
    schema = Schema(properties: WeatherProperty.table(freshFor: settings.freshFor), actions: [Self.refresh])
    if case .coordinates(let point) = settings.site { self.point = point }
  }

  public var nextWake: Instant? {
    let due: Instant? =
      switch state {
      case .resting(let until): until
      case .asking(_, _, let asked, _): asked &+ Self.timeout
      case .stopped: nil
      }
    return [due, shown?.until].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall): start(restored, wall, at: now, &effects)
    case .response(let id, let response): answered(id, response, at: now, &effects)
    case .time(let wall): told(wall, at: now, &effects)
    case .perform(let id, .run(action: 0, _)): refresh(id, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "unknown", "the weather is read-only"))))
    case .cancelled(let id): waiting.removeAll { $0 == id }
    case .stopping: stop(&effects)
    case .wake, .linkChanged, .received, .sent, .observed, .rows, .stored, .leaseBegan, .leaseEnded: break
    }
    advance(at: now, &effects)
  }

  /// Does what is due.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    if let shown, now >= shown.until {
      withdraw(fault ?? "no response from the weather service since", &effects)
      if case .stopped = state {} else { turn(to: "unknown", fault, &effects) }
    }
    switch state {
    case .resting(let until) where now >= until: ask(began: now, at: now, &effects)
    case .asking(_, _, let asked, _) where now >= asked &+ Self.timeout:
      fail(WeatherError(message: "a request got no response and will be repeated"), at: now, &effects)
    default: break
    }
  }

  // MARK: Requests

  /// Starts a round of requests; at most one per minute, for whatever reason.
  func earliest(after now: Instant) -> Instant {
    max(now, lastAsked.map { $0 &+ Self.minPause } ?? now, limitedUntil ?? now)
  }

  mutating func ask(began: Instant, at now: Instant, _ effects: inout Effects) {
    lastRequest &+= 1
    lastAsked = now
    limitedUntil = nil
    if let point {
      state = .asking(.weather(point), lastRequest, asked: now, began: began)
      effects.append(.request(lastRequest, WeatherRequest.weather(at: point, settings)))
    } else if case .place(let name) = settings.site {
      state = .asking(.place(name), lastRequest, asked: now, began: began)
      effects.append(.request(lastRequest, WeatherRequest.place(name, settings)))
    }
  }

  mutating func answered(_ id: RequestID, _ response: HTTPResponse, at now: Instant, _ effects: inout Effects) {
    guard case .asking(let question, id, _, let began) = state else { return }
    do throws(WeatherError) {
      switch question {
      case .place(let wanted):
        let found = try WeatherAnswer.place(response)
        point = found.point
        effects.append(.store(key: WeatherStore.placeKey, WeatherStore.bytes(of: found.point, called: found.name, for: wanted)))
        publish(place: found.name, wanted, &effects)
        // Waiting commands expect two responses.
        for id in waiting { effects.append(.progress(id, Report(text: "place found", progress: 0.5))) }
        ask(began: began, at: now, &effects)
      case .weather:
        let report = try WeatherAnswer.weather(response)
        (failures, unkept) = (0, report)
        show(report, at: now, &effects)
        effects.append(.requestTime)
        state = .resting(until: max(began &+ settings.interval, earliest(after: now)))
        turn(to: "live", nil, &effects)
        finish(.success(Report()), &effects)
      }
    } catch {
      fail(error, at: now, &effects)
    }
  }

  mutating func fail(_ trouble: WeatherError, at now: Instant, _ effects: inout Effects) {
    failures = min(failures + 1, 10)
    let pause =
      switch trouble.pace {
      case .soon: min(Self.minPause << Int64(failures - 1), Self.maxPause)
      case .hourly: Self.hour
      }
    if trouble.pace == .hourly { limitedUntil = now &+ pause }
    state = .resting(until: now &+ pause)
    if shown == nil { for property in WeatherProperty.live { effects.withdraw(property.rawValue, trouble.message) } }
    // If the clock was set, the shown values may be too old.
    if shown?.restored != nil { effects.append(.requestTime) }
    turn(to: shown == nil ? "unknown" : "failing", trouble.message, &effects)
    finish(.failure(.refused(code: "no-answer", trouble.message)), &effects)
  }
}
