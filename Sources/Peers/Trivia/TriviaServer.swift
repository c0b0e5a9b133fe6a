// One connection of an app or a toy to the trivia server: one request, one reply in a single write.
// Facts: triviatoy.md §B, §C (one packet; bytes after the request are garbage).

import Protocols

/// A simulated trivia server, for one client.
public struct TriviaServer: Machine, Redacting {
  /// A reply that is being sent.
  private struct Outgoing {
    var bytes: ArraySlice<UInt8>
    var drips = false
    var isSecret = false
  }

  private enum State {
    /// `until` is the timeout of the request.
    case reading(HTTPReader, until: Instant?)
    case waiting(Outgoing, at: Instant)
    /// A write is in flight; these are the remaining bytes.
    case sending(Outgoing, until: Instant)
    case ended
  }

  private static let maxBodySize = 64 << 10
  private static let timeout: Nanoseconds = 30 * .second
  private static let readerTimeout: Nanoseconds = 300 * .second
  private static let betweenDrops: Nanoseconds = 100 * .millisecond
  /// The bytes that end the part without secrets: the request line up to a query, or the start of a body.
  private static let ends = Set("\n?{".utf8)

  public let schema = Schema()
  private let service: TriviaService
  private let faults: [TriviaFault]
  private let number: UInt64
  private let origin: Instant
  private var state = State.reading(HTTPReader(maxBodySize: maxBodySize), until: nil)
  /// Further input may contain secrets.
  private var isPastTarget = false

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
    isPastTarget ? 0 : bytes.firstIndex(where: Self.ends.contains).map { $0 + 1 } ?? bytes.count
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up):
      state = .reading(HTTPReader(maxBodySize: Self.maxBodySize), until: now + Self.timeout)
      isPastTarget = false
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
      state = .sending(outgoing, until: now + Self.readerTimeout)
      effects.send(.main, Array(piece), 1, secret: outgoing.isSecret)
    case .reading(_, let moment?) where now >= moment: hangUp("no request within \(Self.timeout / .second) s", &effects)
    case .sending(_, let moment) where now >= moment: hangUp("does not read the answer", &effects)
    default: break
    }
  }

  private mutating func sent(_ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard case .sending(let rest, _) = state else { return }
    if rest.bytes.isEmpty || failure != nil { return hangUp(failure ?? "answered", &effects) }
    state = .waiting(rest, at: now + Self.betweenDrops)
  }

  private mutating func hangUp(_ reason: String, _ effects: inout Effects) {
    state = .ended
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func read(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .reading(var reader, let moment) = state else { return }
    isPastTarget = isPastTarget || bytes.contains(where: Self.ends.contains)
    state = .ended  // so that the reader has its bytes for itself
    switch reader.take(bytes) {
    case .unfinished: state = .reading(reader, until: moment)
    case .rejected(let status, let reason): answer(TriviaReply.message(status, reason), at: now)
    case .complete(let request):
      let isPlain = request.path.hasPrefix("/") && request.method.utf8.allSatisfy { (0x41...0x5A).contains($0) }
      effects.append(.event(name: "asked", text: isPlain ? "\(request.method) \(request.path)" : "unrecognized request"))
      perform(request, at: now, &effects)
    }
  }

  private mutating func answer(_ reply: HTTPReply, at moment: Instant, drips: Bool = false) {
    state = .waiting(Outgoing(bytes: reply.bytes[...], drips: drips, isSecret: reply.isSecret), at: moment)
  }

  private mutating func perform(_ request: ReceivedHTTPRequest, at now: Instant, _ effects: inout Effects) {
    let page = "text/html; charset=utf-8"
    if has(.garbage, at: now) {
      state = .waiting(Outgoing(bytes: Array("220 mail.example ESMTP\r\n\r\n".utf8)[...]), at: now)
      return
    }
    if has(.redirect, at: now) { return answer(HTTPReply(302, type: nil, fields: ["Location": "http://elsewhere.invalid/"]), at: now) }
    if has(.down, at: now) { return answer(HTTPReply(503, "<html>The service is unavailable.</html>", type: page), at: now) }
    if has(.html, at: now) { return answer(HTTPReply(200, "<html><form>log in</form></html>", type: page), at: now) }
    if has(.error, at: now) { return answer(TriviaReply.error, at: now) }

    let variant = TriviaReplyVariant(
      idsAreTexts: has(.strings, at: now), factsAreNull: has(.null, at: now), historyIsDouble: has(.duplicate, at: now))
    var (reply, internalError) = service.answer(request, variant)
    if let internalError { effects.append(.event(name: "trouble", text: internalError)) }
    if has(.lost, at: now) { return hangUp("reply dropped", &effects) }
    if has(.huge, at: now) { reply.body += [UInt8](repeating: UInt8(ascii: " "), count: 10_000_000) }
    answer(reply, at: now + (fault(.slow, at: now)?.time ?? 0), drips: has(.drip, at: now))
    if has(.truncated, at: now), case .waiting(var outgoing, let moment) = state {
      outgoing.bytes = outgoing.bytes.dropLast(max(1, reply.body.count / 2))
      state = .waiting(outgoing, at: moment)
    }
  }

  private func has(_ kind: TriviaFaultKind, at now: Instant) -> Bool { fault(kind, at: now) != nil }

  private func fault(_ kind: TriviaFaultKind, at now: Instant) -> TriviaFault? {
    TriviaFault.first(kind, of: faults, client: number, at: now, since: origin)
  }
}
