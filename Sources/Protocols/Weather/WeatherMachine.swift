// The `weather` machine: looks up its place once, then requests the weather every `interval`. At most one request is in flight. After
// failures, it backs off, and keeps the last values until they are stale. The last response is stored across restarts. The location is sent
// only to the two services.
// Source: open-meteo.com, the API documentation; the fair-use limit is 10,000 calls per day.

/// Publishes the weather at one location.
public struct WeatherMachine: Machine {
  /// The state of the machine. Each case carries only the data that is valid in it.
  enum State: Sendable {
    /// No request is in flight; the next one is due at this time.
    case idle(until: Instant)
    /// A request is in flight. `began` is the start of the update, which can consist of two requests.
    case requesting(Request, RequestID, sentAt: Instant, began: Instant)
    /// Disconnected: no request is sent until the device is connected again.
    case stopped
  }

  enum Request: Sendable {
    case place(String)
    case weather(Coordinates)
  }

  public let schema: Schema
  let settings: WeatherSettings
  var state = State.stopped
  /// The coordinates, once they are known.
  var coordinates: Coordinates?
  var lastRequestID: RequestID = 0
  /// When the services were last queried.
  var lastRequestTime: Instant?
  /// No request is sent before this time, because the service limits the rate, or does not know the place; nil if there is no such limit.
  var limitedUntil: Instant?
  var failures = 0
  /// When the published values expire, and the response and its time if it was restored from disk; nil if no values are published.
  var published: (until: Instant, restored: (report: WeatherReport, time: Int64)?)?
  /// A response that waits for the wall-clock time.
  var unstoredReport: WeatherReport?
  /// Commands that wait for the next response.
  var waiting: [CommandID] = []
  var fault: String?

  static let refresh = Action("refresh", help: "Request the weather now; at most once a minute")
  private static let minPause: Nanoseconds = 60 * .second
  private static let maxPause: Nanoseconds = 15 * 60 * .second
  private static let hour: Nanoseconds = 3600 * .second
  /// A timeout in case the HTTP client does not reply; it is long because requests can wait in the client's queue.
  private static let timeout: Nanoseconds = 120 * .second

  init(_ settings: WeatherSettings) {
    self.settings = settings
    schema = Schema(properties: WeatherProperty.table(freshFor: settings.freshFor), actions: [Self.refresh])
    if case .coordinates(let coordinates) = settings.site { self.coordinates = coordinates }
  }

  public var nextWake: Instant? {
    let due: Instant? =
      switch state {
      case .idle(let until): until
      case .requesting(_, _, let sentAt, _): sentAt &+ Self.timeout
      case .stopped: nil
      }
    return [due, published?.until].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall): start(restored, wall, at: now, &effects)
    case .response(let id, let response): handleResponse(id, response, at: now, &effects)
    case .time(let wall): updateClock(wall, at: now, &effects)
    case .perform(let id, .run(action: 0, _)): refresh(id, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .readOnly, "the weather is read-only"))))
    case .cancelled(let id): waiting.removeAll { $0 == id }
    case .stopping: stop(&effects)
    case .wake, .linkChanged, .received, .sent, .observed, .rows, .stored, .leaseBegan, .leaseEnded: break
    }
    advance(at: now, &effects)
  }

  /// Handles expired timers.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    if let published, now >= published.until {
      withdraw(fault ?? "no response from the weather service", &effects)
      if case .stopped = state {} else { setState("unknown", fault, &effects) }
    }
    switch state {
    case .idle(let until) where now >= until: sendRequest(began: now, at: now, &effects)
    case .requesting(_, _, let sentAt, _) where now >= sentAt &+ Self.timeout:
      fail(WeatherError(message: "a request got no response and will be repeated"), at: now, &effects)
    default: break
    }
  }

  // MARK: Requests

  /// The earliest time of the next request. At most one request per minute is sent, whatever the reason.
  func earliestRequest(after now: Instant) -> Instant {
    max(now, lastRequestTime.map { $0 &+ Self.minPause } ?? now, limitedUntil ?? now)
  }

  mutating func sendRequest(began: Instant, at now: Instant, _ effects: inout Effects) {
    lastRequestID &+= 1
    lastRequestTime = now
    limitedUntil = nil
    if let coordinates {
      state = .requesting(.weather(coordinates), lastRequestID, sentAt: now, began: began)
      effects.append(.request(lastRequestID, WeatherRequest.weather(at: coordinates, settings)))
    } else if case .place(let name) = settings.site {
      state = .requesting(.place(name), lastRequestID, sentAt: now, began: began)
      effects.append(.request(lastRequestID, WeatherRequest.place(name, settings)))
    }
  }

  mutating func handleResponse(_ id: RequestID, _ response: HTTPResponse, at now: Instant, _ effects: inout Effects) {
    guard case .requesting(let request, id, _, let began) = state else { return }
    do throws(WeatherError) {
      switch request {
      case .place(let configuredName):
        let found = try WeatherAnswer.place(response)
        coordinates = found.coordinates
        let stored = WeatherStore.bytes(of: found.coordinates, called: found.name, for: configuredName)
        effects.append(.store(key: WeatherStore.placeKey, stored))
        publish(place: found.name, configuredName, &effects)
        // Waiting commands wait for the second response.
        for id in waiting { effects.append(.progress(id, Report(text: "place found", progress: 0.5))) }
        sendRequest(began: began, at: now, &effects)
      case .weather:
        let report = try WeatherAnswer.weather(response)
        (failures, unstoredReport) = (0, report)
        publish(report, at: now, &effects)
        effects.append(.requestTime)
        state = .idle(until: max(began &+ settings.interval, earliestRequest(after: now)))
        setState("live", nil, &effects)
        finish(.success(Report()), &effects)
      }
    } catch {
      fail(error, at: now, &effects)
    }
  }

  mutating func fail(_ error: WeatherError, at now: Instant, _ effects: inout Effects) {
    failures = min(failures + 1, 10)
    let pause =
      switch error.retry {
      case .soon: min(Self.minPause << Int64(failures - 1), Self.maxPause)
      case .hourly: Self.hour
      }
    if error.retry == .hourly { limitedUntil = now &+ pause }
    state = .idle(until: now &+ pause)
    if published == nil { for property in WeatherProperty.inResponse { effects.withdraw(property.rawValue, error.message) } }
    // If the clock was set, the published values may be too old.
    if published?.restored != nil { effects.append(.requestTime) }
    setState(published == nil ? "unknown" : "failing", error.message, &effects)
    finish(.failure(.refused(code: .noAnswer, error.message)), &effects)
  }
}
