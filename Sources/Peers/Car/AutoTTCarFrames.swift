// The effect of each frame on the simulated car, by mode: replies, actions and Python exceptions.
// Source: TCP.py, Modes.py, Steering.py and Cameras.py of task123/AutoTT; the README of task123/AutoTTApp for `documented`.

import Protocols

extension AutoTTCar {
  /// The duration of `top`, `df` and `free` on a Raspberry Pi.
  private static let statusTime: Nanoseconds = .second
  /// The time that the camera takes to start.
  private static let cameraTime: Nanoseconds = 2 * .second

  /// Returns the steps of the receiving thread for this frame, or nil if the program has no handler for it.
  mutating func steps(for frame: ReceivedFrame, at now: Instant, _ effects: inout Effects) throws(PythonException) -> [Step]? {
    switch frame.name {
    case "Modes": return [.send("Modes", modes.map(\.name).joined(separator: ";"))]
    case "Stop", "Continue":
      try steering.handle(frame, &state)
      return []
    case "Disconnect":
      leave(at: now, &effects)
      return []
    default: return dialect == .asBuilt ? try asBuiltSteps(for: frame) : try documentedSteps(for: frame, at: now, &effects)
    }
  }

  // MARK: The as-built dialect

  private mutating func asBuiltSteps(for frame: ReceivedFrame) throws(PythonException) -> [Step]? {
    switch frame.name {
    case "Gyro":
      if case .line = steering { return nil }
      try steering.handle(frame, &state)
    case "LeftButtonTouchDown", "RightButtonTouchDown", "LeftButtonTouchUp", "RightButtonTouchUp":
      guard modes[mode].hasButtons else { return nil }
      try steering.handle(frame, &state)
    case "SpeechRecognition":
      guard modes[mode].takesSpeech else { return nil }
      try steering.handle(frame, &state)
    case "InfoModes":
      guard let index = PythonNumber.int(frame.body) else { throw .value }
      guard (-modes.count..<modes.count).contains(index) else { throw .index }
      return [.send("InfoModes", modes[index < 0 ? modes.count + index : index].info)]
    case "ChosenMode":
      // The program compares strings, so a number with leading blanks or zeros matches no mode.
      guard let index = CarMode.asBuilt.indices.first(where: { frame.text == String($0) }) else { return [] }
      if case .line = steering, !modes[mode].leavesThreadRunning { return [.wait(.second / 2), .endLineThread, .chooseMode(index)] }
      return [.chooseMode(index)]
    case "Status": return [.wait(AutoTTCar.statusTime), .sendStatus]
    case "VideoStream": return streamSteps(frame.text)
    case "VideoQuality":
      guard let size = CarPictureSize(frame.text) else { return [] }
      pictureSize = size
      return [.send("VideoStreamRefresh", "")]
    case "ShutDown": break  // the handler of the original expects `Shutdown`
    default: return nil
    }
    return []
  }

  /// Selects a mode. The new steering is stopped, but the motors keep their speed.
  mutating func choose(_ index: Int) -> [Step] {
    if case .line(let line) = steering, modes[mode].leavesThreadRunning { orphanedLine = line }
    let chosen = modes[index]
    mode = index
    steering = chosen.newSteering
    if chosen.hasLights { state.lights.areOn = true } else { state.lights = CarLights() }
    var steps: [Step] = [.send(chosen.hasButtons ? "ButtonsOn" : "ButtonsOff", "")]
    guard dialect == .asBuilt else { return steps }
    let isLine = chosen.steering == .line
    steps.append(.send(isLine ? "SpeechRecognitionOn" : "SpeechRecognitionOff", ""))
    var isOn = isCameraOn
    if chosen.stopsCamera, !isStreaming {
      steps.append(.camera(isOn: false))
      isOn = false
    }
    if chosen.startsCamera, !isOn { steps += cameraSteps }
    return steps
  }

  private var cameraSteps: [Step] {
    flaws.contains(.videoBlock) ? [.wait(AutoTTCar.cameraTime), .camera(isOn: true)] : [.camera(isOn: true)]
  }

  private func streamSteps(_ text: String) -> [Step] {
    switch text {
    case "On":
      var steps = isCameraOn ? [] : cameraSteps
      steps += [.stream(isOn: true), .send("VideoStreamRefresh", "")]
      if flaws.contains(.videoBlock) { steps.append(.wait(100 * .millisecond)) }
      return steps + [.send("VideoStreamRefresh", ""), .awaitFetch]
    case "Off": return [.stream(isOn: false), .wait(50 * .millisecond), .camera(isOn: false)]
    default: return []
    }
  }

  // MARK: The documented dialect

  private mutating func documentedSteps(
    for frame: ReceivedFrame, at now: Instant, _ effects: inout Effects
  ) throws(PythonException) -> [Step]? {
    switch frame.name {
    case "Gyro": if !steering.isStopped { try steering.handle(frame, &state) }
    case "LeftButtonTouchDownn", "RightButtonTouchDownn", "LeftButtonTouchUpn", "RightButtonTouchUpn":
      if modes[mode].hasButtons { try steering.handle(ReceivedFrame(type: frame.type.dropLast(), body: frame.body), &state) }
    case "InfoModes": return [.send("InfoModes", modes.map(\.info).joined(separator: ";"))]
    case "ChosenMode":
      guard let index = PythonNumber.int(frame.body), modes.indices.contains(index) else { throw .value }
      state.wheels = .still
      return [.chooseMode(index)]
    case "Status": return [.sendStatus]
    case "VideoStream":
      guard ["on", "off"].contains(frame.text.lowercased()) else { throw .value }
      let isOn = frame.text.lowercased() == "on"
      return [.camera(isOn: isOn), .stream(isOn: isOn)]
    case "VideoQuality":
      guard let size = CarPictureSize(frame.text.prefix(1).uppercased() + frame.text.dropFirst().lowercased()) else { throw .value }
      pictureSize = size
    case "ShutDown":
      isOff = true
      leave(at: now, &effects)
    case "Message": break
    default: return nil
    }
    return []
  }
}

extension CarMode {
  var hasButtons: Bool { steering == .tiltWithIndicators || steering == .buttons }
  /// Whether the mode switches the lights on.
  var hasLights: Bool { steering == .tiltWithIndicators || takesSpeech }

  var newSteering: CarSteering {
    switch steering {
    case .tilt: .tilt(TiltSteering(hasIndicators: false))
    case .tiltWithIndicators: .tilt(TiltSteering(hasIndicators: true))
    case .buttons: .buttons(ButtonSteering())
    case .line: .line(LineSteering())
    }
  }
}

extension CarPictureSize {
  /// Parses the value of VideoQuality.
  init?(_ text: String) {
    switch text {
    case "High": self = .high
    case "Medium": self = .medium
    case "Low": self = .low
    default: return nil
    }
  }
}
