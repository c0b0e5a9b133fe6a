// The receiving thread of the simulated car, which reads 1024 bytes at a time and executes frames in order. Slow steps delay later frames.
// An exception in a handler discards the rest of the read. Source: TCP.py and Cameras.py of task123/AutoTT.

import Protocols

extension AutoTTCar {
  /// A step of the execution of a frame.
  enum Step: Sendable {
    case wait(Nanoseconds)
    case send(String, String)
    case sendStatus
    case camera(isOn: Bool)
    case stream(isOn: Bool)
    /// Waits until a client of the video server has fetched a picture.
    case awaitFetch
    /// Ends the line-following thread and stops the motors.
    case endLineThread
    case chooseMode(Int)
  }

  private static let fetchPollInterval: Nanoseconds = 100 * .millisecond

  /// Executes received frames until the thread must wait.
  mutating func runReceivingThread(at now: Instant, _ effects: inout Effects) {
    while programState != .waiting, programState != .ended, !hasFault(.held), awaitsFetchSince == nil {
      if let until = waitsUntil {
        guard now >= until else { return }
        waitsUntil = nil
      }
      if !steps.isEmpty {
        perform(steps.removeFirst(), at: now, &effects)
      } else if let frame = receiver.next() {
        // Frames that arrive before the setup is complete are discarded.
        if case .settingUp = programState { continue }
        execute(frame, at: now, &effects)
      } else if case .leaving = programState {
        return
      } else if lags(at: now) || !receiver.read() {
        if waitsUntil == nil { return }
      }
    }
  }

  /// Whether a `lag` fault delays this read.
  private mutating func lags(at now: Instant) -> Bool {
    guard !receiver.kernelBuffer.isEmpty, !isLagOver else {
      isLagOver = false
      return false
    }
    readCount += 1
    guard let fault = faults.due(.lag, item: readCount, after: now - connectedAt) else { return false }
    isLagOver = true
    waitsUntil = now + (fault.duration ?? .second / 2)
    return true
  }

  private mutating func execute(_ frame: ReceivedFrame, at now: Instant, _ effects: inout Effects) {
    do throws(PythonException) {
      guard let newSteps = try steps(for: frame, at: now, &effects) else {
        return effects.append(.event(name: "ignored", text: "ignored \(frame.logText)"))
      }
      effects.append(.event(name: "frame", text: "frame \(frame.logText)"))
      steps = newSteps
    } catch {
      let lost = flaws.contains(.reassembly) ? receiver.discardRead() : 0
      effects.append(.event(name: "exception", text: "exception \(error.name) in \(frame.name), \(lost) bytes lost"))
    }
  }

  private mutating func perform(_ step: Step, at now: Instant, _ effects: inout Effects) {
    switch step {
    case .wait(let time): if !isInstant { waitsUntil = now + time }
    case .send(let type, let body): send(frame(type, body), at: now)
    case .sendStatus: send(frame("Status", status(at: now)), at: now)
    case .camera(let isOn): state.isCameraOn = isOn
    case .stream(let isOn): (state.isStreaming, pictureWasFetched, mustSendStarted) = (isOn, false, false)
    case .awaitFetch:
      if pictureWasFetched {
        sendStarted(at: now)
      } else if flaws.contains(.videoBlock) {
        awaitsFetchSince = now
      } else {
        mustSendStarted = true
      }
    case .endLineThread: (steering, state.wheels) = (.tilt(TiltSteering(hasIndicators: false)), .still)
    case .chooseMode(let index): steps = choose(index) + steps
    }
  }

  private mutating func sendStarted(at now: Instant) {
    if dialect == .asBuilt { send(frame("VideoStreamStarted", ""), at: now) }
  }

  /// Handles a complete picture that was sent to a video client. A waiting thread notices it at its next poll.
  mutating func pictureFetched(at now: Instant) {
    pictureWasFetched = true
    if mustSendStarted {
      mustSendStarted = false
      sendStarted(at: now)
    }
    guard let since = awaitsFetchSince else { return }
    awaitsFetchSince = nil
    steps.insert(.awaitFetch, at: 0)
    let polls = (now - since + AutoTTCar.fetchPollInterval - 1) / AutoTTCar.fetchPollInterval
    if !isInstant { waitsUntil = since + polls * AutoTTCar.fetchPollInterval }
  }
}
