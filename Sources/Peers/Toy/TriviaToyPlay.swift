// The main loop of the toy: throws, speech, and requests to the server, one connection each. It does not notice that a server closes.
// Facts: protocols of the toy, §C. The order of retries is our definition: the report, then the facts.

import Protocols

/// The state of the connection to the server.
enum ToyExchange: Sendable, Equatable {
  case none
  case dialling(ToyServerRequest, until: Instant)
  case asking(ToyServerRequest, until: Instant)
}

extension TriviaToy {
  private var hasRetries: Bool { isOnline && !user.isEmpty && (card.unreported > 0 || card.owed > 0) }

  func nextWake(during exchange: ToyExchange) -> Instant? {
    switch exchange {
    case .none: [presses.first, nextThrow, hasRetries ? nextPass : nil].compactMap(\.self).min()
    case .dialling(_, let until), .asking(_, let until): until
    }
  }

  mutating func stepMainLoop(_ exchange: ToyExchange, at now: Instant, _ effects: inout Effects) {
    switch exchange {
    case .dialling(let request, _): finish(request, "cannot reach the server", at: now, &effects)
    case .asking(let request, _): finish(request, "the server does not answer", at: now, &effects)
    case .none:
      if lookAtButton(at: now, &effects) { return }
      if let due = nextThrow, due <= now {
        catchUp(to: now)
        beThrown(at: now, &effects)
      } else if hasRetries, nextPass <= now {
        begin(card.unreported > 0 ? .report(card.unreported) : .fetch(isRetry: true), at: now, &effects)
      }
    }
  }

  /// Enters the setup mode if the button is pressed. Returns whether it is.
  @discardableResult mutating func lookAtButton(at now: Instant, _ effects: inout Effects) -> Bool {
    guard let press = presses.first, press <= now else { return false }
    presses.removeAll { $0 <= now }
    enterSetup(at: now, &effects)
    return true
  }

  /// Skips throws during other activities.
  private mutating func catchUp(to now: Instant) {
    while let every = settings.throwEvery, let due = nextThrow, due <= now { nextThrow = due + max(.millisecond, every) }
  }

  private mutating func beThrown(at now: Instant, _ effects: inout Effects) {
    let (slot, text) = card.play(&effects)
    report("spoke", "thrown: speaks fact \(slot): \(text)", &effects)
    if user.isEmpty {
      report("spoke", "speaks: please set up the Internet", &effects)
    } else if isOnline {
      begin(.fetch(isRetry: false), at: now, &effects)
    } else {
      card.countUnreported(&effects)
    }
  }

  private mutating func begin(_ request: ToyServerRequest, at now: Instant, _ effects: inout Effects) {
    effects.append(.openLink(Self.server, url: settings.server))
    phase = .playing(.dialling(request, until: now + timing.dial))
  }

  mutating func serverConnected(at now: Instant, _ effects: inout Effects) {
    guard case .playing(.dialling(let request, _)) = phase else { return effects.append(.closeLink(Self.server)) }
    let overflow = request.overflow(user: user)
    if overflow > 0 { report("overflow", "the request overflows a buffer by \(overflow) bytes: a real toy may restart", &effects) }
    lastSend &+= 1
    effects.send(Self.server, request.request(user: user, noise: &noise), lastSend)
    phase = .playing(.asking(request, until: now + timing.answer))
  }

  mutating func read(_ packet: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .playing(.asking(let request, let until)) = phase, now < until else { return }
    let answer = ToyServerReply(packet: packet)
    if answer.excess > 0 { report("lost", "the last \(answer.excess) bytes of the reply are lost", &effects) }
    guard answer.isOK else { return finish(request, "the reply does not begin with HTTP/1.1 200 OK", at: now, &effects) }
    if case .fetch = request {
      let slot = card.store(answer.fact, &effects)
      let text = answer.fact.isEmpty ? "nothing: no quotes in the packet" : String(decoding: answer.fact, as: UTF8.self)
      report("fetched", "stored fact \(slot): \(text)", &effects)
    }
    finish(request, nil, at: now, &effects)
  }

  /// Ends a request. `failure` is nil on success.
  private mutating func finish(_ request: ToyServerRequest, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    effects.append(.closeLink(Self.server))
    phase = .playing(.none)
    nextPass = now + timing.pass
    catchUp(to: now)
    if let failure { report("failed", "\(failure): \(request.name) is retried later", &effects) }
    switch request {
    case .fetch(isRetry: false):
      if failure == nil { begin(.reportOne, at: now, &effects) } else { card.countUnreported(&effects) }
    case .reportOne:
      if failure == nil { report("reported", "reported one play", &effects) } else { card.countUnreported(&effects) }
    case .fetch(isRetry: true):
      if failure == nil { card.fetched(&effects) }
    case .report(let plays):
      guard failure == nil else { return }
      card.reported(plays, &effects)
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
