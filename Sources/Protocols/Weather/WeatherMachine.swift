// The `weather` machine: asks where its place is, once, and then for the weather, every `interval`. There is never more than
// one request under way; after failures it asks less and less often, and keeps showing what it knows until that is stale. The
// last answer outlives a restart. It never tells anybody but the services where the place is.
// Facts: protocols of the mirror, §9; the service's fair-use limit of 10,000 calls a day.

/// Shows the weather at one place.
public struct WeatherMachine: Machine {
  /// What the machine is at. Each case carries just what is valid in it.
  enum State: Sendable {
    /// The next question is due then.
    case resting(until: Instant)
    /// A question is out, as part of what began then.
    case asking(Question, RequestID, asked: Instant, began: Instant)
    /// Nothing is asked before a person connects the device again.
    case stopped
  }

  enum Question: Sendable {
    case place(String)
    case weather(Coordinates)
  }

  public let schema: Schema
  let settings: WeatherSettings
  var state = State.stopped
  /// Where it is, once that is known.
  var point: Coordinates?
  var lastRequest: RequestID = 0
  /// When the services were asked last.
  var lastAsked: Instant?
  /// They want to be left alone until then.
  var limitedUntil: Instant?
  var failures = 0
  /// Until when what is shown may be; what it is and when it came, where that was before a restart.
  var shown: (until: Instant, restored: (report: WeatherReport, time: Int64)?)?
  /// An answer that waits for the time of the wall's clock.
  var unkept: WeatherReport?
  var waiting: [CommandID] = []
  var word = ""
  var fault: String?

  static let refresh = Action("refresh", help: "Asks for the weather now; at most once a minute")
  private static let minPause: Nanoseconds = 60 * .second
  private static let maxPause: Nanoseconds = 15 * 60 * .second
  private static let hour: Nanoseconds = 3600 * .second
  /// The client answers every request, but some wait for their turn.
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
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "unknown", "the weather cannot be set"))))
    case .cancelled(let id): waiting.removeAll { $0 == id }
    case .stopping: stop(&effects)
    case .wake, .linkChanged, .received, .sent, .observed, .rows, .stored, .leaseBegan, .leaseEnded: break
    }
    advance(at: now, &effects)
  }

  /// Does what is due.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    if let shown, now >= shown.until {
      withdraw(fault ?? "the weather service has told nothing since", &effects)
      if case .stopped = state {} else { turn(to: "unknown", fault, &effects) }
    }
    switch state {
    case .resting(let until) where now >= until: ask(began: now, at: now, &effects)
    case .asking(_, _, let asked, _) where now >= asked &+ Self.timeout:
      fail(WeatherTrouble(words: "a request has got lost: it is made again"), at: now, &effects)
    default: break
    }
  }

  // MARK: Asking

  /// Not more than one round a minute, whoever wants it.
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
    do throws(WeatherTrouble) {
      switch question {
      case .place(let wanted):
        let found = try WeatherAnswer.place(response)
        point = found.point
        effects.append(.store(key: WeatherKeeping.placeKey, WeatherKeeping.bytes(of: found.point, called: found.name, for: wanted)))
        publish(place: found.name, wanted, &effects)
        // Whoever waits does so for two answers.
        for id in waiting { effects.append(.progress(id, Report(text: "the place is found", progress: 0.5))) }
        ask(began: began, at: now, &effects)
      case .weather:
        let report = try WeatherAnswer.weather(response)
        (failures, unkept) = (0, report)
        show(report, at: now, &effects)
        effects.append(.tellTime)
        state = .resting(until: max(began &+ settings.interval, earliest(after: now)))
        turn(to: "live", nil, &effects)
        finish(.success(Report()), &effects)
      }
    } catch {
      fail(error, at: now, &effects)
    }
  }

  mutating func fail(_ trouble: WeatherTrouble, at now: Instant, _ effects: inout Effects) {
    failures = min(failures + 1, 10)
    let pause =
      switch trouble.pace {
      case .soon: min(Self.minPause << Int64(failures - 1), Self.maxPause)
      case .hourly: Self.hour
      }
    if trouble.pace == .hourly { limitedUntil = now &+ pause }
    state = .resting(until: now &+ pause)
    if shown == nil { for property in WeatherProperty.live { effects.withdraw(property.rawValue, trouble.words) } }
    // A clock that was set since may have made what is shown too old.
    if shown?.restored != nil { effects.append(.tellTime) }
    turn(to: shown == nil ? "unknown" : "failing", trouble.words, &effects)
    finish(.failure(.refused(code: "no-answer", trouble.words)), &effects)
  }
}
