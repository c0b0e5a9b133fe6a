// A simulated Open-Meteo server with its forecast and geocoding services. A connection serves one request. The weather is constant, but the
// temperature depends on the latitude, to distinguish places.

import Protocols

/// One connection to a simulated weather service.
public struct OpenMeteo: Machine {
  private enum State {
    case reading(HTTPReader)
    case waiting([UInt8], sendAt: Instant)
    case sending
    case ended
  }

  public let schema = Schema()
  private let faults: [ForecastFault]
  private let number: UInt64
  private let origin: Instant
  private var state = State.reading(HTTPReader())

  /// Creates the connection of client `number`, counted from 0, to a service that started at `origin`.
  public init(client number: UInt64 = 0, origin: Instant = 0, faults: [ForecastFault] = []) {
    self.number = number
    self.origin = origin
    self.faults = faults
  }

  public var nextWake: Instant? { if case .waiting(_, let sendAt) = state { sendAt } else { nil } }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .received(.main, let bytes): read(bytes, at: now, &effects)
    case .sent:
      state = .ended
      effects.append(.resetLink(.main, reason: "answered"))
    case .linkChanged(.main, .down): state = .ended
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a weather service takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    if case .waiting(let bytes, let sendAt) = state, now >= sendAt {
      state = .sending
      effects.send(.main, bytes, 1)
    }
  }

  private mutating func read(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .reading(var reader) = state else { return }
    state = .ended  // releases the reader's storage, to avoid a copy
    let request: ReceivedHTTPRequest
    switch reader.receive(bytes) {
    case .complete(let complete): request = complete
    case .rejected(let status, let reason):
      state = .waiting(ForecastReply.error(status, reason).bytes, sendAt: now)
      return
    case .unfinished:
      state = .reading(reader)
      return
    }
    effects.append(.event(name: "request", text: "request for \(request.path)"))
    let slow = activeFault(.slow, at: now)
    state = .waiting(replyBytes(to: request, at: now), sendAt: now + (slow?.duration ?? 0))
  }

  private func replyBytes(to request: ReceivedHTTPRequest, at now: Instant) -> [UInt8] {
    if hasFault(.garbage, at: now) { return Array("220 mail.example ESMTP\r\n\r\n".utf8) }
    if hasFault(.limit, at: now) { return ForecastReply.error(429, "Minutely API request limit exceeded.").bytes }
    if hasFault(.redirect, at: now) { return HTTPReply(302, "", fields: ["Location": "/elsewhere"]).bytes }
    if hasFault(.down, at: now) { return HTTPReply(503, "<html>down</html>", type: "text/html").bytes }
    if hasFault(.html, at: now) { return HTTPReply(200, "<html><form>log in</form></html>", type: "text/html; charset=utf-8").bytes }
    if hasFault(.error, at: now) {
      let reason = "Latitude must be in range of -90 to 90°. Given: \(request.query["latitude"] ?? "nothing")."
      return ForecastReply.error(400, reason).bytes
    }
    if hasFault(.huge, at: now) { return HTTPReply(200, "{\"padding\":\"\(String(repeating: "x", count: 2 << 20))\"}").bytes }
    let reply = reply(to: request, at: now)
    let bytes = reply.bytes
    return hasFault(.truncated, at: now) ? Array(bytes.dropLast(max(1, reply.body.count / 2))) : bytes
  }

  private func reply(to request: ReceivedHTTPRequest, at now: Instant) -> HTTPReply {
    guard request.method == "GET" else { return ForecastReply.error(405, "only GET") }
    switch request.path {
    case "/v1/forecast":
      return ForecastReply.forecast(request.query, valuesAreNull: hasFault(.null, at: now), alwaysFahrenheit: hasFault(.unit, at: now))
    case "/v1/search": return ForecastReply.places(request.query["name"] ?? "")
    default: return ForecastReply.error(404, "Not Found")
    }
  }

  private func hasFault(_ kind: ForecastFaultKind, at now: Instant) -> Bool { activeFault(kind, at: now) != nil }

  private func activeFault(_ kind: ForecastFaultKind, at now: Instant) -> ForecastFault? {
    ForecastFault.active(kind, of: faults, client: number, at: now, since: origin)
  }
}
