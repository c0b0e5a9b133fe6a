// The lifecycle of the simulated car's program, from its client to its restart by the supervisor, and the threads that drive the motors.
// Facts: autott.md §7 (set-up, Disconnect, end of file), §4 and §8 (the end of the line-following thread).

import Protocols

extension AutoTTCar {
  /// The state of the program.
  enum ProgramState: Sendable, Equatable {
    case waiting
    /// A client is connected, but no handlers are.
    case settingUp(until: Instant)
    case serving
    /// Disconnect was received; the supervisor will end the program.
    case leaving(until: Instant)
    case ended

    var isSettingUp: Bool { if case .settingUp = self { true } else { false } }
  }

  private static let setUp: Nanoseconds = 50 * .millisecond
  private static let supervisor: Nanoseconds = 600 * .millisecond

  mutating func clientConnected(at now: Instant) {
    guard programState == .waiting else { return }
    sendQueue.reset(at: now)
    (receiver, steps, restsUntil, awaitsPictureSince) = (CarReceiver(reassembles: !flaws.contains(.reassembly)), [], nil, nil)
    connectedAt = now
    programState = .serving
    if hasFault(.held) { return }
    nextLook = now + 2 * .second
    guard dialect == .asBuilt else { return plan = greeting(from: now) }
    let ready = now + (isInstant ? 0 : AutoTTCar.setUp)
    programState = .settingUp(until: ready)
    plan = greeting(from: ready + (isInstant ? 0 : .second / 2))
  }

  /// As built, a disconnect has no effect: the car keeps driving.
  mutating func clientDisconnected(at now: Instant, _ effects: inout Effects) {
    sendQueue.clear(at: now)
    guard programState == .serving || programState.isSettingUp, !hasFault(.held) else { return }
    if !flaws.contains(.ignoresClose) {
      leave(at: now, &effects)
    } else if !flaws.contains(.oneClient) || !flaws.contains(.restart) {
      disconnectClient("client disconnected", at: now, &effects)
    }
  }

  private mutating func disconnectClient(_ reason: String, at now: Instant, _ effects: inout Effects) {
    sendQueue.clear(at: now)
    (programState, plan, heldBack, nextLook) = (.waiting, [], [], nil)
    (steps, restsUntil, awaitsPictureSince) = ([], nil, nil)
    effects.append(.resetLink(.main, reason: reason))
  }

  /// Switches everything off. The steering is new and stopped.
  private mutating func standStill() {
    state = CarState()
    (orphanedLine, mode) = (nil, 0)
    steering = .tilt(TiltSteering(hasIndicators: false))
  }

  /// Handles Disconnect. Frames are still executed until the supervisor ends the program.
  mutating func leave(at now: Instant, _ effects: inout Effects) {
    state = CarState()
    if case .line = steering { steering = .line(LineSteering()) }
    orphanedLine = nil
    if flaws.contains(.restart) || isOff {
      programState = .leaving(until: now + (isInstant ? 0 : AutoTTCar.supervisor))
    } else {
      standStill()
      disconnectClient("session ended", at: now, &effects)
    }
  }

  mutating func runProgram(at now: Instant, _ effects: inout Effects) {
    switch programState {
    case .settingUp(let until) where now >= until: programState = .serving
    case .leaving(let until) where now >= until:
      standStill()
      programState = .ended
      (plan, steps, restsUntil, nextLook, lineDue) = ([], [], nil, nil, nil)
      effects.append(.resetLink(.main, reason: isOff ? "the car is off" : "the program ends"))
    default: break
    }
  }

  /// Line-following threads set the motors periodically, even after a mode change.
  mutating func runLine(at now: Instant) {
    var wheels = orphanedLine?.wheels
    if case .line(let line) = steering { wheels = wheels ?? line.wheels }
    guard let wheels, wheels != state.wheels else { return lineDue = nil }
    guard let due = lineDue else { return lineDue = now + LineSteering.period }
    if now >= due { (state.wheels, lineDue) = (wheels, nil) }
  }

  mutating func reportState(_ effects: inout Effects) {
    if state.wheels.text != lastReported.wheels.text { effects.append(.event(name: "motors", text: "motors \(state.wheels.text)")) }
    if state.lights != lastReported.lights { effects.append(.event(name: "lights", text: "lights \(state.lights.text)")) }
    if state.isCameraOn != lastReported.isCameraOn {
      effects.append(.event(name: "camera", text: state.isCameraOn ? "camera on" : "camera off"))
    }
    if state.isStreaming != lastReported.isStreaming {
      effects.append(.event(name: "stream", text: state.isStreaming ? "stream on" : "stream off"))
    }
    lastReported = state
  }
}
