// One connection of an app or a toy to the trivia server: one request, and one reply in a single write, because the toy reads only one
// packet. Bytes after the request are ignored, because the toy sends garbage there.

import Protocols

/// One connection to a simulated trivia server.
public struct TriviaServer: Machine, Redacting {
  /// A reply that is being sent.
  private struct Outgoing {
    var bytes: ArraySlice<UInt8>
    /// Whether it is sent one byte at a time (fault `drip`).
    var drips = false
    var isSecret = false
  }

  private enum State {
    /// The client must send its request by `until`, which is nil while no client is connected.
    case reading(HTTPReader, until: Instant?)
    /// The next write is due at this time.
    case waiting(Outgoing, at: Instant)
    /// A write is in flight, which must complete by `until`. `Outgoing` has the bytes after it.
    case sending(Outgoing, until: Instant)
    case ended
  }

  private static let maxBodySize = 64 << 10
  private static let requestTimeout: Nanoseconds = 30 * .second
  /// The timeout for a client that does not read the reply.
  private static let writeTimeout: Nanoseconds = 300 * .second
  private static let dripInterval: Nanoseconds = 100 * .millisecond
  /// The bytes after which secrets may follow: the end of the request line, and the start of a query or of a body.
  private static let secretMarks = Set("\n?{".utf8)

  public let schema = Schema()
  private let service: TriviaService
  private let faults: [TriviaFault]
  private let number: UInt64
  private let origin: Instant
  private var state = State.reading(HTTPReader(maxBodySize: maxBodySize), until: nil)
  /// Whether the request line has ended, so that further input may contain secrets.
  private var isPastRequestLine = false

  /// Creates the connection of client `number`, counted from 0, to a server that started at `origin`.
  public init(_ service: TriviaService, client number: UInt64 = 0, origin: Instant = 0, faults: [TriviaFault] = []) {
    (self.service, self.number, self.origin, self.faults) = (service, number, origin, faults)
  }

  public var nextWake: Instant? {
    switch state {
    case .reading(_, let moment): moment
    case .waiting(_, let moment), .sending(_, let moment): moment
    case .ended: nil
    }
  }

  public func printableCount(of bytes: [UInt8]) -> Int {
    isPastRequestLine ? 0 : bytes.firstIndex(where: Self.secretMarks.contains).map { $0 + 1 } ?? bytes.count
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up):
      state = .reading(HTTPReader(maxBodySize: Self.maxBodySize), until: now + Self.requestTimeout)
      isPastRequestLine = false
    case .linkChanged(.main, .down): state = .ended
    case .received(.main, let bytes): read(bytes, at: now, &effects)
    case .sent(_, let failure): sent(failure, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a trivia server takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    advance(at: now, &effects)
  }

  private mutating func advance(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .waiting(var outgoing, let moment) where now >= moment:
      let piece = outgoing.drips ? outgoing.bytes.prefix(1) : outgoing.bytes
      outgoing.bytes = outgoing.bytes.dropFirst(piece.count)
      state = .sending(outgoing, until: now + Self.writeTimeout)
      effects.send(.main, Array(piece), 1, secret: outgoing.isSecret)
    case .reading(_, let moment?) where now >= moment: close("no request within \(Self.requestTimeout / .second) s", &effects)
    case .sending(_, let moment) where now >= moment: close("does not read the answer", &effects)
    default: break
    }
  }

  private mutating func sent(_ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard case .sending(let rest, _) = state else { return }
    if rest.bytes.isEmpty || failure != nil { return close(failure ?? "answered", &effects) }
    state = .waiting(rest, at: now + Self.dripInterval)
  }

  private mutating func close(_ reason: String, _ effects: inout Effects) {
    state = .ended
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func read(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .reading(var reader, let moment) = state else { return }
    isPastRequestLine = isPastRequestLine || bytes.contains(where: Self.secretMarks.contains)
    state = .ended  // releases the reader's storage, to avoid a copy
    switch reader.receive(bytes) {
    case .unfinished: state = .reading(reader, until: moment)
    case .rejected(let status, let reason): send(TriviaReply.message(status, reason), at: now)
    case .complete(let request):
      let isPrintable = request.path.hasPrefix("/") && request.method.utf8.allSatisfy { (0x41...0x5A).contains($0) }
      effects.append(.event(name: "request", text: isPrintable ? "\(request.method) \(request.path)" : "unrecognized request"))
      perform(request, at: now, &effects)
    }
  }

  private mutating func send(_ reply: HTTPReply, at moment: Instant, drips: Bool = false) {
    state = .waiting(Outgoing(bytes: reply.bytes[...], drips: drips, isSecret: reply.isSecret), at: moment)
  }

  private mutating func perform(_ request: ReceivedHTTPRequest, at now: Instant, _ effects: inout Effects) {
    let html = "text/html; charset=utf-8"
    if hasFault(.garbage, at: now) {
      state = .waiting(Outgoing(bytes: Array("220 mail.example ESMTP\r\n\r\n".utf8)[...]), at: now)
      return
    }
    if hasFault(.redirect, at: now) { return send(HTTPReply(302, type: nil, fields: ["Location": "http://elsewhere.invalid/"]), at: now) }
    if hasFault(.down, at: now) { return send(HTTPReply(503, "<html>The service is unavailable.</html>", type: html), at: now) }
    if hasFault(.html, at: now) { return send(HTTPReply(200, "<html><form>log in</form></html>", type: html), at: now) }
    if hasFault(.error, at: now) { return send(TriviaReply.error, at: now) }

    let variant = TriviaReplyVariant(
      idsAreStrings: hasFault(.strings, at: now), factsAreNull: hasFault(.null, at: now), historyIsDoubled: hasFault(.duplicate, at: now))
    var (reply, internalError) = service.answer(request, variant)
    if let internalError { effects.append(.event(name: "trouble", text: internalError)) }
    if hasFault(.lost, at: now) { return close("reply dropped", &effects) }
    if hasFault(.huge, at: now) { reply.body += [UInt8](repeating: UInt8(ascii: " "), count: 10_000_000) }
    send(reply, at: now + (activeFault(.slow, at: now)?.duration ?? 0), drips: hasFault(.drip, at: now))
    if hasFault(.truncated, at: now), case .waiting(var outgoing, let moment) = state {
      outgoing.bytes = outgoing.bytes.dropLast(max(1, reply.body.count / 2))
      state = .waiting(outgoing, at: moment)
    }
  }

  private func hasFault(_ kind: TriviaFaultKind, at now: Instant) -> Bool { activeFault(kind, at: now) != nil }

  private func activeFault(_ kind: TriviaFaultKind, at now: Instant) -> TriviaFault? {
    TriviaFault.active(kind, of: faults, client: number, at: now, since: origin)
  }
}
