// The lifecycle of the simulated car's program, from the connection of a phone to the restart by the supervisor, and the thread that
// follows a line. Source: mainLoop.py, controllerOfMainLoop.py, TCP.py and Modes.py of task123/AutoTT.

import Protocols

extension AutoTTCar {
  /// The state of the program.
  enum ProgramState: Sendable, Equatable {
    case waiting
    /// A phone is connected, but the program executes no frames yet.
    case settingUp(until: Instant)
    case serving
    /// Disconnect or ShutDown was received; the supervisor will end the program.
    case leaving(until: Instant)
    case ended

    var isSettingUp: Bool { if case .settingUp = self { true } else { false } }
  }

  private static let setUpTime: Nanoseconds = 50 * .millisecond
  /// From Disconnect to the end of the program.
  private static let supervisorTime: Nanoseconds = 600 * .millisecond

  mutating func clientConnected(at now: Instant) {
    guard programState == .waiting else { return }
    sendQueue.reset(at: now)
    (receiver, steps, waitsUntil, awaitsFetchSince) = (CarReceiver(reassembles: !flaws.contains(.reassembly)), [], nil, nil)
    connectedAt = now
    programState = .serving
    if hasFault(.held) { return }
    nextHealthCheck = now + 2 * .second
    guard dialect == .asBuilt else { return scheduledFrames = greeting(from: now) }
    let ready = now + (isInstant ? 0 : AutoTTCar.setUpTime)
    programState = .settingUp(until: ready)
    scheduledFrames = greeting(from: ready + (isInstant ? 0 : .second / 2))
  }

  /// Handles the end of the phone's connection. With all flaws of the as-built dialect, this has no effect: the car keeps driving.
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
    (programState, scheduledFrames, heldBack, nextHealthCheck) = (.waiting, [], [], nil)
    (steps, waitsUntil, awaitsFetchSince) = ([], nil, nil)
    effects.append(.resetLink(.main, reason: reason))
  }

  /// Switches everything off, and returns to mode 0, stopped.
  private mutating func resetState() {
    state = CarState()
    (orphanedLine, mode) = (nil, 0)
    steering = .tilt(TiltSteering(hasIndicators: false))
  }

  /// Handles Disconnect and ShutDown. The program executes frames until the supervisor ends it. Without the flaw `restart`, Disconnect
  /// ends only the session.
  mutating func leave(at now: Instant, _ effects: inout Effects) {
    state = CarState()
    if case .line = steering { steering = .line(LineSteering()) }
    orphanedLine = nil
    if flaws.contains(.restart) || isOff {
      programState = .leaving(until: now + (isInstant ? 0 : AutoTTCar.supervisorTime))
    } else {
      resetState()
      disconnectClient("session ended", at: now, &effects)
    }
  }

  /// Completes the setup, or ends the program, when this is due.
  mutating func runProgram(at now: Instant, _ effects: inout Effects) {
    switch programState {
    case .settingUp(let until) where now >= until: programState = .serving
    case .leaving(let until) where now >= until:
      resetState()
      programState = .ended
      (scheduledFrames, steps, waitsUntil, nextHealthCheck, lineDue) = ([], [], nil, nil, nil)
      effects.append(.resetLink(.main, reason: isOff ? "the car is off" : "the program ends"))
    default: break
    }
  }

  /// Runs the line-following thread, which sets the motors periodically. The thread of a mode with `leavesThreadRunning` does so even after
  /// a mode change.
  mutating func runLineThread(at now: Instant) {
    var wheels = orphanedLine?.wheels
    if case .line(let line) = steering { wheels = wheels ?? line.wheels }
    guard let wheels, wheels != state.wheels else { return lineDue = nil }
    guard let due = lineDue else { return lineDue = now + LineSteering.period }
    if now >= due { (state.wheels, lineDue) = (wheels, nil) }
  }

  /// Reports changes of the state as events.
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
