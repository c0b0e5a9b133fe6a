// The toy in its main loop: it is thrown, speaks, and asks the server for one fact more and tells it of the play, each on a
// connection of its own. It must never ask twice at a time, nor notice that a server has closed.
// Facts: protocols of the toy, §C. In which order it makes up for what failed is our definition: the report, then the facts.

import Protocols

/// The connection to the server.
enum ToyExchange: Sendable, Equatable {
  case none
  case dialling(ToyServerRequest, until: Instant)
  case asking(ToyServerRequest, until: Instant)
}

extension TriviaToy {
  private var makesUp: Bool { isOnline && !user.isEmpty && (card.unreported > 0 || card.owed > 0) }

  func nextWake(during exchange: ToyExchange) -> Instant? {
    switch exchange {
    case .none: [presses.first, nextThrow, makesUp ? nextPass : nil].compactMap(\.self).min()
    case .dialling(_, let until), .asking(_, let until): until
    }
  }

  mutating func stepMainLoop(_ exchange: ToyExchange, at now: Instant, _ effects: inout Effects) {
    switch exchange {
    case .dialling(let request, _): finish(request, "the server cannot be reached", at: now, &effects)
    case .asking(let request, _): finish(request, "the server does not answer", at: now, &effects)
    case .none:
      if lookAtButton(at: now, &effects) { return }
      if let due = nextThrow, due <= now {
        catchUp(to: now)
        beThrown(at: now, &effects)
      } else if makesUp, nextPass <= now {
        begin(card.unreported > 0 ? .report(card.unreported) : .fetch(isOwed: true), at: now, &effects)
      }
    }
  }

  /// Whether it was pressed; it is in setup mode then.
  @discardableResult mutating func lookAtButton(at now: Instant, _ effects: inout Effects) -> Bool {
    guard let press = presses.first, press <= now else { return false }
    presses.removeAll { $0 <= now }
    enterSetup(at: now, &effects)
    return true
  }

  /// Throws that it could not notice are over.
  private mutating func catchUp(to now: Instant) {
    while let every = settings.throwEvery, let due = nextThrow, due <= now { nextThrow = due + max(.millisecond, every) }
  }

  private mutating func beThrown(at now: Instant, _ effects: inout Effects) {
    let (slot, text) = card.play(&effects)
    tell("spoke", "thrown: it says fact \(slot): \(text)", &effects)
    if user.isEmpty {
      tell("spoke", "it says: please set up the Internet", &effects)
    } else if isOnline {
      begin(.fetch(isOwed: false), at: now, &effects)
    } else {
      card.owe(&effects)
    }
  }

  private mutating func begin(_ request: ToyServerRequest, at now: Instant, _ effects: inout Effects) {
    effects.append(.openLink(Self.server, url: settings.server))
    phase = .playing(.dialling(request, until: now + timing.dial))
  }

  mutating func serverIsThere(at now: Instant, _ effects: inout Effects) {
    guard case .playing(.dialling(let request, _)) = phase else { return effects.append(.closeLink(Self.server)) }
    let overflow = request.overflow(user: user)
    if overflow > 0 { tell("overflow", "its request overflows a buffer by \(overflow) bytes: a real toy may restart", &effects) }
    lastSend &+= 1
    effects.send(Self.server, request.request(user: user, noise: &noise), lastSend)
    phase = .playing(.asking(request, until: now + timing.answer))
  }

  mutating func read(_ packet: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard case .playing(.asking(let request, let until)) = phase, now < until else { return }
    let answer = ToyServerReply(packet: packet)
    if answer.excess > 0 { tell("lost", "the answer's last \(answer.excess) bytes are lost", &effects) }
    guard answer.isOK else { return finish(request, "the answer does not begin with HTTP/1.1 200 OK", at: now, &effects) }
    if case .fetch = request {
      let slot = card.keep(answer.fact, &effects)
      let text = answer.fact.isEmpty ? "nothing, for no quotes were in the packet" : String(decoding: answer.fact, as: UTF8.self)
      tell("fetched", "it keeps as fact \(slot): \(text)", &effects)
    }
    finish(request, nil, at: now, &effects)
  }

  /// One connection is over, well or with a reason.
  private mutating func finish(_ request: ToyServerRequest, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    effects.append(.closeLink(Self.server))
    phase = .playing(.none)
    nextPass = now + timing.pass
    catchUp(to: now)
    if let failure { tell("failed", "\(failure): \(request.words) comes later", &effects) }
    switch request {
    case .fetch(isOwed: false):
      if failure == nil { begin(.reportOne, at: now, &effects) } else { card.owe(&effects) }
    case .reportOne:
      if failure == nil { tell("reported", "it has reported one play", &effects) } else { card.owe(&effects) }
    case .fetch(isOwed: true):
      if failure == nil { card.fetched(&effects) }
    case .report(let plays):
      guard failure == nil else { return }
      card.reported(plays, &effects)
      tell("reported", "it has reported \(plays) earlier plays", &effects)
    }
  }
}

extension ToyServerRequest {
  fileprivate var words: String {
    switch self {
    case .fetch: "the next fact"
    case .reportOne: "the report"
    case .report(let plays): "the report of \(plays) plays"
    }
  }
}
