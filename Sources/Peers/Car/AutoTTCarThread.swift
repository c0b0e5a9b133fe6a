// The receiving thread of the simulated car, which reads 1024 bytes at a time and executes frames in order. Slow steps delay later frames.
// Facts: autott.md §8 (what runs on the receiving thread; an exception loses the rest of the read), §6 (the picture).

import Protocols

extension AutoTTCar {
  /// A step of the execution of a frame.
  enum Step: Sendable {
    case rest(Nanoseconds)
    case send(String, String)
    case sendStatus
    case camera(isOn: Bool)
    case stream(isOn: Bool)
    /// Waits until a client of the video server has fetched a picture.
    case awaitPicture
    /// Ends the line-following thread and stops the motors.
    case endLine
    case choose(Int)
  }

  private static let pictureLook: Nanoseconds = 100 * .millisecond

  mutating func runThread(at now: Instant, _ effects: inout Effects) {
    while programState != .waiting, programState != .ended, !hasFault(.held), awaitsPictureSince == nil {
      if let until = restsUntil {
        guard now >= until else { return }
        restsUntil = nil
      }
      if !steps.isEmpty {
        perform(steps.removeFirst(), at: now, &effects)
      } else if let frame = receiver.next() {
        // Before the set-up is complete no handlers are connected.
        if case .settingUp = programState { continue }
        execute(frame, at: now, &effects)
      } else if case .leaving = programState {
        return
      } else if lags(at: now) || !receiver.read() {
        if restsUntil == nil { return }
      }
    }
  }

  /// Whether a `lag` fault delays this read.
  private mutating func lags(at now: Instant) -> Bool {
    guard !receiver.held.isEmpty, !hasLagged else {
      hasLagged = false
      return false
    }
    reads += 1
    guard let fault = faults.active(.lag, item: reads, after: now - connectedAt) else { return false }
    hasLagged = true
    restsUntil = now + (fault.time ?? .second / 2)
    return true
  }

  private mutating func execute(_ frame: ReceivedFrame, at now: Instant, _ effects: inout Effects) {
    do throws(PythonException) {
      guard let todo = try steps(for: frame, at: now, &effects) else {
        return effects.append(.event(name: "ignored", text: "ignored \(frame.shown)"))
      }
      effects.append(.event(name: "frame", text: "frame \(frame.shown)"))
      steps = todo
    } catch {
      let lost = flaws.contains(.reassembly) ? receiver.drop() : 0
      effects.append(.event(name: "exception", text: "exception \(error.name) in \(frame.name), \(lost) bytes lost"))
    }
  }

  private mutating func perform(_ step: Step, at now: Instant, _ effects: inout Effects) {
    switch step {
    case .rest(let time): if !isInstant { restsUntil = now + time }
    case .send(let type, let body): send(frame(type, body), at: now)
    case .sendStatus: send(frame("Status", status(at: now)), at: now)
    case .camera(let isOn): state.isCameraOn = isOn
    case .stream(let isOn): (state.isStreaming, pictureWasFetched, owesStarted) = (isOn, false, false)
    case .awaitPicture:
      if pictureWasFetched {
        sendStarted(at: now)
      } else if flaws.contains(.videoBlock) {
        awaitsPictureSince = now
      } else {
        owesStarted = true
      }
    case .endLine: (steering, state.wheels) = (.tilt(TiltSteering(hasIndicators: false)), .still)
    case .choose(let index): steps = choose(index) + steps
    }
  }

  private mutating func sendStarted(at now: Instant) {
    if dialect == .asBuilt { send(frame("VideoStreamStarted", ""), at: now) }
  }

  /// Handles a complete picture sent to a client. The thread notices it when it polls the next time.
  mutating func aPictureWasFetched(at now: Instant) {
    pictureWasFetched = true
    if owesStarted {
      owesStarted = false
      sendStarted(at: now)
    }
    guard let since = awaitsPictureSince else { return }
    awaitsPictureSince = nil
    steps.insert(.awaitPicture, at: 0)
    let looks = (now - since + AutoTTCar.pictureLook - 1) / AutoTTCar.pictureLook
    if !isInstant { restsUntil = since + looks * AutoTTCar.pictureLook }
  }
}
