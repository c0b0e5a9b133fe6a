// The one thread on which the simulated car reads and obeys: what takes time here, keeps everything else waiting, and what
// came meanwhile is found later in reads of 1024 bytes. It must never skip ahead of what it is at.
// Facts: autott.md §8 (what runs on the receiving thread; an exception costs the rest of the read), §6 (the picture).

import Protocols

extension AutoTTCar {
  /// What the thread does next, within a frame.
  enum Step: Sendable {
    case rest(Nanoseconds)
    case say(String, String)
    case sayStatus
    case camera(isOn: Bool)
    case stream(isOn: Bool)
    /// Until a client of the video server has had a picture.
    case awaitPicture
    /// The line's thread is told to end, and the motors with it.
    case endLine
    case choose(Int)
  }

  private static let pictureLook: Nanoseconds = 100 * .millisecond

  mutating func runThread(at now: Instant, _ effects: inout Effects) {
    while life != .waiting, life != .ended, !hasFault(.held), awaitsPictureSince == nil {
      if let until = restsUntil {
        guard now >= until else { return }
        restsUntil = nil
      }
      if !steps.isEmpty {
        perform(steps.removeFirst(), at: now, &effects)
      } else if let word = receiver.next() {
        // Until the program is set up nothing is connected to anything.
        if case .settingUp = life { continue }
        obey(word, at: now, &effects)
      } else if case .leaving = life {
        return
      } else if lags(at: now) || !receiver.read() {
        if restsUntil == nil { return }
      }
    }
  }

  /// The thread is somewhere else when something comes in.
  private mutating func lags(at now: Instant) -> Bool {
    guard !receiver.held.isEmpty, !hasLagged else {
      hasLagged = false
      return false
    }
    reads += 1
    for (index, fault) in faults.enumerated() where fault.kind == .lag {
      switch fault.moment {
      case .every(let count): guard reads % count == 0 else { continue }
      case .after(let time): guard now - cameAt >= time, triggered.insert(index).inserted else { continue }
      case .always: break
      }
      hasLagged = true
      restsUntil = now + (fault.time ?? .second / 2)
      return true
    }
    return false
  }

  private mutating func obey(_ word: ReceivedFrame, at now: Instant, _ effects: inout Effects) {
    do throws(PythonException) {
      guard let todo = try steps(for: word, at: now, &effects) else {
        return effects.append(.event(name: "ignored", text: "ignored \(word.shown)"))
      }
      effects.append(.event(name: "frame", text: "frame \(word.shown)"))
      steps = todo
    } catch {
      let lost = flaws.contains(.reassembly) ? receiver.drop() : 0
      effects.append(.event(name: "exception", text: "exception \(error.name) in \(word.name), \(lost) bytes lost"))
    }
  }

  private mutating func perform(_ step: Step, at now: Instant, _ effects: inout Effects) {
    switch step {
    case .rest(let time): if !isInstant { restsUntil = now + time }
    case .say(let type, let body): say(frame(type, body), at: now)
    case .sayStatus: say(frame("Status", status(at: now)), at: now)
    case .camera(let isOn): body.isCameraOn = isOn
    case .stream(let isOn): (body.isStreaming, pictureWasFetched, owesStarted) = (isOn, false, false)
    case .awaitPicture:
      if pictureWasFetched {
        sayStarted(at: now)
      } else if flaws.contains(.videoBlock) {
        awaitsPictureSince = now
      } else {
        owesStarted = true
      }
    case .endLine: (steering, body.wheels) = (.tilt(TiltSteering(hasIndicators: false)), .still)
    case .choose(let index): steps = choose(index) + steps
    }
  }

  private mutating func sayStarted(at now: Instant) {
    if dialect == .asBuilt { say(frame("VideoStreamStarted", ""), at: now) }
  }

  /// A client of the video server has a whole picture; the thread sees it when it looks the next time.
  mutating func aPictureWasFetched(at now: Instant) {
    pictureWasFetched = true
    if owesStarted {
      owesStarted = false
      sayStarted(at: now)
    }
    guard let since = awaitsPictureSince else { return }
    awaitsPictureSince = nil
    steps.insert(.awaitPicture, at: 0)
    let looks = (now - since + AutoTTCar.pictureLook - 1) / AutoTTCar.pictureLook
    if !isInstant { restsUntil = since + looks * AutoTTCar.pictureLook }
  }
}
