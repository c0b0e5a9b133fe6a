// The setup mode of the toy: the handshake with the phone, the credentials, and joining the network.
// Source: microprocessor.ino and ESP8266.cpp of neils95/Trivio.

import Protocols

extension TriviaToy {
  private static let ok = Array("ok".utf8)

  mutating func enterSetup(at now: Instant, _ effects: inout Effects) {
    (connections, mismatches) = (0, 0)
    report("setup", "button pressed: the open network Trivio is up", &effects)
    connectToPhone(at: now, &effects)
  }

  /// Connects to the phone, or listens for it.
  private mutating func connectToPhone(at now: Instant, _ effects: inout Effects) {
    if let address = settings.listensAt {
      effects.append(.listen(Self.phone, at: address, from: nil))
      phase = .waitingForPhone
    } else {
      effects.append(.openLink(Self.phone, url: settings.phone))
      phase = .connecting(until: now + timing.connect)
    }
  }

  /// Closes this connection, and opens another one.
  private mutating func reconnect(at now: Instant, _ effects: inout Effects) {
    effects.append(.closeLink(Self.phone))
    if settings.listensAt == nil {
      phase = .waitingToReconnect(until: now + timing.reconnectDelay)
    } else {
      connectToPhone(at: now, &effects)
    }
  }

  mutating func stepSetup(at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .waitingToReconnect: connectToPhone(at: now, &effects)
    case .connecting:
      effects.append(.closeLink(Self.phone))
      connectToPhone(at: now, &effects)
    case .waitingForOK:
      report("setup", "no packet from the phone: reconnecting", &effects)
      reconnect(at: now, &effects)
    case .pausing(_, let rest): send(rest, then: .answering(rest: []), &effects)
    case .busy:
      report("setup", "waiting for credentials", &effects)
      phase = .waitingForCredentials(until: now + timing.credentials)
    case .waitingForCredentials:
      report("setup", "timeout waiting for credentials: network Trivio is down; the button must be pressed again", &effects)
      effects.append(.closeLink(Self.phone))
      leaveSetup(at: now)
    case .joining(let credentials, _, let succeeds): finishJoining(credentials, succeeds, at: now, &effects)
    default: break
    }
  }

  mutating func phoneChanged(_ state: LinkState, at now: Instant, _ effects: inout Effects) {
    switch (phase, state) {
    case (.connecting, .up), (.waitingForPhone, .up):
      connections += 1
      if activateFault(.mute, at: now) { phase = .mute } else { phase = .waitingForOK(until: now + timing.firstPacket) }
    case (.waitingForPhone, .down(let reason)):
      report("setup", "cannot listen: \(reason)", &effects)
      phase = .waitingToReconnect(until: now + .second)
    case (.mute, .down): reconnect(at: now, &effects)
    case (_, .up): effects.append(.closeLink(Self.phone))
    // The library of the Wi-Fi chip only waits for packets, so the firmware does not notice a disconnect.
    case (_, .down), (_, .refused): break
    }
  }

  mutating func receiveFromPhone(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .waitingForOK(let until) where now < until: receiveFirstPacket(bytes, at: now, &effects)
    case .waitingForCredentials(let until) where now < until: receiveCredentials(bytes, at: now, &effects)
    case .answering, .pausing, .busy: report("lost", "\(bytes.count) bytes received while busy: garbled and lost", &effects)
    default: report("lost", "\(bytes.count) more bytes received: never read", &effects)
    }
  }

  private mutating func receiveFirstPacket(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard bytes == Self.ok else {
      mismatches += 1
      let memory = mismatches > 1 ? "; \(mismatches) times so far, each leaking memory" : ""
      report("setup", "the first packet from the phone is not ok: reconnecting\(memory)", &effects)
      return reconnect(at: now, &effects)
    }
    if activateFault(.early, at: now) { return reconnect(at: now, &effects) }
    if activateFault(.split, at: now) {
      send([Self.ok[0]], then: .answering(rest: [Self.ok[1]]), &effects)
    } else {
      send(activateFault(.newline, at: now) ? Self.ok + [0x0A] : Self.ok, then: .answering(rest: []), &effects)
    }
  }

  private mutating func send(_ bytes: [UInt8], then next: Phase, _ effects: inout Effects) {
    lastSend &+= 1
    effects.send(Self.phone, bytes, lastSend)
    phase = next
  }

  /// Continues after a send, successful or not.
  mutating func sentToPhone(at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .answering(let rest) where !rest.isEmpty: phase = .pausing(until: now + 100 * .millisecond, rest: rest)
    case .answering:
      if activateFault(.redial, at: now) { reconnect(at: now, &effects) } else { phase = .busy(until: now + timing.busy) }
    case .sendingFinalReply(let credentials):
      effects.append(.closeLink(Self.phone))
      join(credentials, at: now, &effects)
    default: break
    }
  }

  private mutating func receiveCredentials(_ packet: [UInt8], at now: Instant, _ effects: inout Effects) {
    if packet.count > ReceivedCredentials.maxLength {
      report("lost", "\(packet.count) bytes of credentials: only the first \(ReceivedCredentials.maxLength) count", &effects)
    }
    let credentials = ReceivedCredentials(packet: packet)
    let texts = [credentials.user, credentials.network, credentials.password].map { String(decoding: $0, as: UTF8.self) }
    report("credentials", "user \"\(texts[0])\", network \"\(texts[1])\", password \"\(texts[2])\"", &effects)
    card.setUser(credentials.user, &effects)
    if texts[0] != user { report("user", "the new user is effective after the toy is switched off and on", &effects) }
    if activateFault(.yes, at: now) { return send(Array("yes".utf8), then: .sendingFinalReply(credentials), &effects) }
    if activateFault(.no, at: now) { return send(Array("no".utf8), then: .sendingFinalReply(credentials), &effects) }
    if activateFault(.reset, at: now) {
      effects.append(.resetLink(Self.phone, reason: "network Trivio is down"))
    } else if !activateFault(.silent, at: now) {
      effects.append(.closeLink(Self.phone))
    }
    join(credentials, at: now, &effects)
  }

  private mutating func join(_ credentials: ReceivedCredentials, at now: Instant, _ effects: inout Effects) {
    if let injection = credentials.injection { report("injected", injection, &effects) }
    // The chip replies to a broken command with neither OK nor FAIL, so the toy times out.
    let time = credentials.injection == nil ? min(settings.joinsAfter, timing.join) : timing.join
    phase = .joining(credentials, until: now + time, succeeds: canJoin(credentials))
  }

  private mutating func finishJoining(_ credentials: ReceivedCredentials, _ succeeds: Bool, at now: Instant, _ effects: inout Effects) {
    isOnline = succeeds
    if succeeds { card.remember(credentials, &effects) }
    let name = String(decoding: credentials.network, as: UTF8.self)
    report("joined", succeeds ? "joined the network \"\(name)\"" : "cannot join the network \"\(name)\"", &effects)
    leaveSetup(at: now)
  }

  /// Leaves setup mode. Button presses in setup mode are lost.
  private mutating func leaveSetup(at now: Instant) {
    presses.removeAll { $0 <= now }
    enterMainLoop(at: now)
  }

  /// Returns whether a fault of this kind affects the current connection. A fault with a start time does so only once.
  private mutating func activateFault(_ kind: ToyFaultKind, at now: Instant) -> Bool {
    guard let fault = settings.faults.first(where: { $0.kind == kind }) else { return false }
    switch fault.trigger {
    case .always: return true
    case .every(let count): return connections <= count
    case .after(let time): return now - origin >= time && triggered.insert(kind).inserted
    }
  }
}
