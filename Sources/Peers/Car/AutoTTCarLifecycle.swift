// The life of the simulated car's program: from its client to the supervisor that ends it, and the threads that tell the motors
// whatever anybody thinks. It must never mend what the original leaves as it is: a client that is gone changes nothing.
// Facts: autott.md §7 (set-up, Disconnect, end of file), §4 and §8 (what ends a line's thread, and what does not).

import Protocols

extension AutoTTCar {
  /// Where the program stands.
  enum Life: Sendable, Equatable {
    case waiting
    /// A client is there, and nobody listens to what is read.
    case settingUp(until: Instant)
    case serving
    /// Disconnect came; the supervisor is on its way.
    case leaving(until: Instant)
    case ended

    var isSettingUp: Bool { if case .settingUp = self { true } else { false } }
  }

  private static let setUp: Nanoseconds = 50 * .millisecond
  private static let supervisor: Nanoseconds = 600 * .millisecond

  mutating func clientCame(at now: Instant) {
    guard life == .waiting else { return }
    sendQueue.reset(at: now)
    (receiver, steps, restsUntil, awaitsPictureSince) = (CarReceiver(reassembles: !flaws.contains(.reassembly)), [], nil, nil)
    cameAt = now
    life = .serving
    if hasFault(.held) { return }
    nextLook = now + 2 * .second
    guard dialect == .asBuilt else { return plan = greeting(from: now) }
    let ready = now + (isInstant ? 0 : AutoTTCar.setUp)
    life = .settingUp(until: ready)
    plan = greeting(from: ready + (isInstant ? 0 : .second / 2))
  }

  /// As built nothing follows: whoever was driving is still driving.
  mutating func clientWent(at now: Instant, _ effects: inout Effects) {
    sendQueue.clear(at: now)
    guard life == .serving || life.isSettingUp, !hasFault(.held) else { return }
    if !flaws.contains(.deaf) {
      leave(at: now, &effects)
    } else if !flaws.contains(.oneClient) || !flaws.contains(.restart) {
      disconnectClient("the client is gone", at: now, &effects)
    }
  }

  private mutating func disconnectClient(_ reason: String, at now: Instant, _ effects: inout Effects) {
    sendQueue.clear(at: now)
    (life, plan, heldBack, nextLook) = (.waiting, [], [], nil)
    (steps, restsUntil, awaitsPictureSince) = ([], nil, nil)
    effects.append(.resetLink(.main, reason: reason))
  }

  /// Everything is off; who steers is new and stopped.
  private mutating func standStill() {
    body = CarBody()
    (orphanedLine, mode) = (nil, 0)
    steering = .tilt(TiltSteering(hasIndicators: false))
  }

  /// Disconnect: the supervisor needs a while to end the program, and what came with it is still obeyed.
  mutating func leave(at now: Instant, _ effects: inout Effects) {
    body = CarBody()
    if case .line = steering { steering = .line(LineSteering()) }
    orphanedLine = nil
    if flaws.contains(.restart) || isOff {
      life = .leaving(until: now + (isInstant ? 0 : AutoTTCar.supervisor))
    } else {
      standStill()
      disconnectClient("the session is over", at: now, &effects)
    }
  }

  mutating func runLife(at now: Instant, _ effects: inout Effects) {
    switch life {
    case .settingUp(let until) where now >= until: life = .serving
    case .leaving(let until) where now >= until:
      standStill()
      life = .ended
      (plan, steps, restsUntil, nextLook, lineDue) = ([], [], nil, nil, nil)
      effects.append(.resetLink(.main, reason: isOff ? "the car is off" : "the program ends"))
    default: break
    }
  }

  /// The threads that follow a line tell the motors again and again, whoever steers by now.
  mutating func runLine(at now: Instant) {
    var wheels = orphanedLine?.wheels
    if case .line(let line) = steering { wheels = wheels ?? line.wheels }
    guard let wheels, wheels != body.wheels else { return lineDue = nil }
    guard let due = lineDue else { return lineDue = now + LineSteering.period }
    if now >= due { (body.wheels, lineDue) = (wheels, nil) }
  }

  mutating func tellBody(_ effects: inout Effects) {
    if body.wheels.text != told.wheels.text { effects.append(.event(name: "motors", text: "motors \(body.wheels.text)")) }
    if body.lights != told.lights { effects.append(.event(name: "lights", text: "lights \(body.lights.text)")) }
    if body.isCameraOn != told.isCameraOn { effects.append(.event(name: "camera", text: body.isCameraOn ? "camera on" : "camera off")) }
    if body.isStreaming != told.isStreaming { effects.append(.event(name: "stream", text: body.isStreaming ? "stream on" : "stream off")) }
    told = body
  }
}
