// The main loop of the toy: throws, speech, and requests to the server, each on its own connection. The toy does not notice when the server
// closes a connection. Source: microprocessor.ino of neils95/Trivio; the order of retries (the report, then the facts) is an assumption.

import Protocols

/// The state of a request to the server.
enum ToyExchange: Sendable, Equatable {
  case none
  case connecting(ToyServerRequest, until: Instant)
  case waitingForReply(ToyServerRequest, until: Instant)
}

extension TriviaToy {
  private var hasRetries: Bool { isOnline && !user.isEmpty && (card.unreportedPlays > 0 || card.missingFacts > 0) }

  func nextWake(during exchange: ToyExchange) -> Instant? {
    switch exchange {
    case .none: [presses.first, nextThrow, hasRetries ? nextRetry : nil].compactMap(\.self).min()
    case .connecting(_, let until), .waitingForReply(_, let until): until
    }
  }

  mutating func stepMainLoop(_ exchange: ToyExchange, at now: Instant, _ effects: inout Effects) {
    switch exchange {
    case .connecting(let request, _): finish(request, "cannot reach the server", at: now, &effects)
    case .waitingForReply(let request, _): finish(request, "the server does not answer", at: now, &effects)
    case .none:
      if checkButton(at: now, &effects) { return }
      if let due = nextThrow, due <= now {
        skipThrows(until: now)
        handleThrow(at: now, &effects)
      } else if hasRetries, nextRetry <= now {
        connect(for: card.unreportedPlays > 0 ? .report(card.unreportedPlays) : .fetch(isRetry: true), at: now, &effects)
      }
    }
  }

  /// Enters setup mode and returns true if the button is pressed.
  @discardableResult mutating func checkButton(at now: Instant, _ effects: inout Effects) -> Bool {
    guard let press = presses.first, press <= now else { return false }
    presses.removeAll { $0 <= now }
    enterSetup(at: now, &effects)
    return true
  }

  /// Skips the throws that were due until now, because the toy did not notice them.
  private mutating func skipThrows(until now: Instant) {
    while let every = settings.throwEvery, let due = nextThrow, due <= now { nextThrow = due + max(.millisecond, every) }
  }

  private mutating func handleThrow(at now: Instant, _ effects: inout Effects) {
    let (slot, text) = card.playNext(&effects)
    report("spoke", "thrown: speaks fact \(slot): \(text)", &effects)
    if user.isEmpty {
      report("spoke", "speaks: please set up the Internet", &effects)
    } else if isOnline {
      connect(for: .fetch(isRetry: false), at: now, &effects)
    } else {
      card.countUnreported(&effects)
    }
  }

  private mutating func connect(for request: ToyServerRequest, at now: Instant, _ effects: inout Effects) {
    effects.append(.openLink(Self.server, url: settings.server))
    phase = .playing(.connecting(request, until: now + timing.connect))
  }

  mutating func serverConnected(at now: Instant, _ effects: inout Effects) {
    guard case .playing(.connecting(let request, _)) = phase else { return effects.append(.closeLink(Self.server)) }
    let overflow = request.overflow(user: user)
    if overflow > 0 { report("overflow", "the request overflows a buffer by \(overflow) bytes: a real toy may restart", &effects) }
    lastSend &+= 1
    effects.send(Self.server, request.request(user: user, random: &random), lastSend)
    phase = .playing(.waitingForReply(request, until: now + timing.answer))
  }

  mutating func receiveFromServer(_ packet: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .playing(.waitingForReply(let request, let until)) = phase, now < until else { return }
    let reply = ToyServerReply(packet: packet)
    if reply.lostByteCount > 0 { report("lost", "the last \(reply.lostByteCount) bytes of the reply are lost", &effects) }
    guard reply.isOK else { return finish(request, "the reply does not begin with HTTP/1.1 200 OK", at: now, &effects) }
    if case .fetch = request {
      let slot = card.store(reply.fact, &effects)
      let text = reply.fact.isEmpty ? "nothing: no quotes in the packet" : String(decoding: reply.fact, as: UTF8.self)
      report("fetched", "stored fact \(slot): \(text)", &effects)
    }
    finish(request, nil, at: now, &effects)
  }

  /// Ends a request. `failure` is nil on success.
  private mutating func finish(_ request: ToyServerRequest, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    effects.append(.closeLink(Self.server))
    phase = .playing(.none)
    nextRetry = now + timing.loopPeriod
    skipThrows(until: now)
    if let failure { report("failed", "\(failure): \(request.name) is retried later", &effects) }
    switch request {
    case .fetch(isRetry: false):
      if failure == nil { connect(for: .reportOne, at: now, &effects) } else { card.countUnreported(&effects) }
    case .reportOne:
      if failure == nil { report("reported", "reported one play", &effects) } else { card.countUnreported(&effects) }
    case .fetch(isRetry: true):
      if failure == nil { card.subtractDownloadedFact(&effects) }
    case .report(let plays):
      guard failure == nil else { return }
      card.subtractReported(plays, &effects)
      report("reported", "reported \(plays) earlier plays", &effects)
    }
  }
}

extension ToyServerRequest {
  fileprivate var name: String {
    switch self {
    case .fetch: "the next fact"
    case .reportOne: "the report"
    case .report(let plays): "the report of \(plays) plays"
    }
  }
}
