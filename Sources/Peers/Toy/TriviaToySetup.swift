// The toy in its setup mode: it has a network of its own, connects to the phone or waits for it, and is told the network of
// the house. It owns the handshake and its traps, and must never hear what the firmware would not.
// Facts: protocols of the toy, §A.

import Protocols

extension TriviaToy {
  private static let ok = Array("ok".utf8)

  mutating func enterSetup(at now: Instant, _ effects: inout Effects) {
    (connections, mismatches) = (0, 0)
    tell("setup", "the button is pressed: its open network Trivio is on", &effects)
    dial(at: now, &effects)
  }

  private mutating func dial(at now: Instant, _ effects: inout Effects) {
    if let place = settings.listensAt {
      effects.append(.listen(Self.phone, at: place, from: nil))
      phase = .waitingForPhone
    } else {
      effects.append(.openLink(Self.phone, url: settings.phone))
      phase = .dialling(until: now + timing.dial)
    }
  }

  /// Gives this connection up and tries another one.
  private mutating func redial(at now: Instant, _ effects: inout Effects) {
    effects.append(.closeLink(Self.phone))
    if settings.listensAt == nil { phase = .resting(until: now + timing.rest) } else { dial(at: now, &effects) }
  }

  mutating func stepSetup(at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .resting: dial(at: now, &effects)
    case .dialling:
      effects.append(.closeLink(Self.phone))
      dial(at: now, &effects)
    case .waitingForOK:
      tell("setup", "the phone says nothing: it closes and connects again", &effects)
      redial(at: now, &effects)
    case .pausing(_, let rest): say(rest, then: .answering(rest: []), &effects)
    case .busy: phase = .waitingForCredentials(until: now + timing.credentials)
    case .waitingForCredentials:
      tell("setup", "no credentials in time: its network is off, and the button must be pressed again", &effects)
      effects.append(.closeLink(Self.phone))
      leaveSetup(at: now)
    case .joining(let credentials, _, let succeeds): finishJoining(credentials, succeeds, at: now, &effects)
    default: break
    }
  }

  mutating func phoneChanged(_ state: LinkState, at now: Instant, _ effects: inout Effects) {
    switch (phase, state) {
    case (.dialling, .up), (.waitingForPhone, .up):
      connections += 1
      if hasFault(.mute, at: now) { phase = .mute } else { phase = .waitingForOK(until: now + timing.firstPacket) }
    case (.waitingForPhone, .down(let reason)):
      tell("setup", "it cannot listen: \(reason)", &effects)
      phase = .resting(until: now + .second)
    case (.mute, .down): redial(at: now, &effects)
    case (_, .up): effects.append(.closeLink(Self.phone))
    // Its library waits for packets alone: whoever is gone is waited for.
    case (_, .down), (_, .refused): break
    }
  }

  mutating func hear(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .waitingForOK(let until) where now < until: hearFirst(bytes, at: now, &effects)
    case .waitingForCredentials(let until) where now < until: take(bytes, at: now, &effects)
    case .answering, .pausing, .busy: tell("lost", "\(bytes.count) bytes came while it was busy: they are garbled and lost", &effects)
    default: tell("lost", "\(bytes.count) bytes more came: nobody reads them", &effects)
    }
  }

  private mutating func hearFirst(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard bytes == Self.ok else {
      mismatches += 1
      let memory = mismatches > 1 ? "; \(mismatches) times so far, and each costs memory" : ""
      tell("setup", "the phone's first packet is not ok: it closes and connects again\(memory)", &effects)
      return redial(at: now, &effects)
    }
    if hasFault(.early, at: now) { return redial(at: now, &effects) }
    if hasFault(.split, at: now) {
      say([Self.ok[0]], then: .answering(rest: [Self.ok[1]]), &effects)
    } else {
      say(hasFault(.newline, at: now) ? Self.ok + [0x0A] : Self.ok, then: .answering(rest: []), &effects)
    }
  }

  private mutating func say(_ bytes: [UInt8], then next: Phase, _ effects: inout Effects) {
    lastSend &+= 1
    effects.send(Self.phone, bytes, lastSend)
    phase = next
  }

  /// The link took what was said, or lost it, which the toy does not notice.
  mutating func phoneHasHeard(at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .answering(let rest) where !rest.isEmpty: phase = .pausing(until: now + 100 * .millisecond, rest: rest)
    case .answering:
      if hasFault(.redial, at: now) { redial(at: now, &effects) } else { phase = .busy(until: now + timing.busy) }
    case .parting(let credentials):
      effects.append(.closeLink(Self.phone))
      join(credentials, at: now, &effects)
    default: break
    }
  }

  private mutating func take(_ packet: [UInt8], at now: Instant, _ effects: inout Effects) {
    if packet.count > ReceivedCredentials.longest {
      tell("lost", "\(packet.count) bytes of credentials: only the first \(ReceivedCredentials.longest) count", &effects)
    }
    let credentials = ReceivedCredentials(packet: packet)
    let texts = [credentials.user, credentials.network, credentials.password].map { String(decoding: $0, as: UTF8.self) }
    tell("credentials", "user \"\(texts[0])\", network \"\(texts[1])\", password \"\(texts[2])\"", &effects)
    card.belong(to: credentials.user, &effects)
    if texts[0] != user { tell("user", "the new user counts when it has been switched off and on", &effects) }
    if hasFault(.yes, at: now) { return say(Array("yes".utf8), then: .parting(credentials), &effects) }
    if hasFault(.no, at: now) { return say(Array("no".utf8), then: .parting(credentials), &effects) }
    if hasFault(.reset, at: now) {
      effects.append(.resetLink(Self.phone, reason: "its network is gone"))
    } else if !hasFault(.silent, at: now) {
      effects.append(.closeLink(Self.phone))
    }
    join(credentials, at: now, &effects)
  }

  private mutating func join(_ credentials: ReceivedCredentials, at now: Instant, _ effects: inout Effects) {
    if let injection = credentials.injection { tell("injected", injection, &effects) }
    // To a broken command the chip says neither OK nor FAIL, which is what the toy waits for.
    let time = credentials.injection == nil ? min(settings.joinsAfter, timing.join) : timing.join
    phase = .joining(credentials, until: now + time, succeeds: canJoin(credentials))
  }

  private mutating func finishJoining(_ credentials: ReceivedCredentials, _ succeeds: Bool, at now: Instant, _ effects: inout Effects) {
    isOnline = succeeds
    if succeeds { card.remember(credentials, &effects) }
    let name = String(decoding: credentials.network, as: UTF8.self)
    tell("joined", succeeds ? "it is in the network \"\(name)\"" : "the network \"\(name)\" did not take it in", &effects)
    leaveSetup(at: now)
  }

  /// While it was in setup mode nobody looked at the button.
  private mutating func leaveSetup(at now: Instant) {
    presses.removeAll { $0 <= now }
    enterMainLoop(at: now)
  }

  /// Whether this connection is one that the fault strikes.
  private mutating func hasFault(_ kind: ToyFaultKind, at now: Instant) -> Bool {
    guard let fault = settings.faults.first(where: { $0.kind == kind }) else { return false }
    switch fault.moment {
    case .always: return true
    case .every(let count): return connections <= count
    case .after(let time): return now - origin >= time && triggered.insert(kind).inserted
    }
  }
}
