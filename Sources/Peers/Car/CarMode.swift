// The modes of a simulated car. Source: Modes.py of task123/AutoTT (names, order, buttons, speech). The descriptions are not the
// original's.

/// A mode. Its index in the list is the body of ChosenMode.
struct CarMode: Sendable {
  /// The type of steering.
  enum Steering: Sendable, Equatable { case tilt, tiltWithIndicators, buttons, line }

  var name: String
  var info: String
  var steering: Steering
  /// Whether selecting the mode starts the camera.
  var startsCamera = false
  /// Whether selecting the mode first stops the camera, unless the camera is streaming.
  var stopsCamera = true
  /// Whether recognized speech is passed to the steering.
  var takesSpeech = false
  /// Whether the thread of this mode keeps running when another mode is selected.
  var leavesThreadRunning = false

  static let asBuilt: [CarMode] = [
    CarMode(name: "Tilt Steering", info: "Tilt the phone, and the car goes where it leans.", steering: .tilt),
    CarMode(
      name: "Tilt, Lights",
      info: "Like 'Tilt Steering', but with the lights on. Hold the left or right half for an indicator, both for the high beam.",
      steering: .tiltWithIndicators),
    CarMode(
      name: "Tilt with AOA", info: "Tilt the phone, and the car stops before it hits something (AOA, automated object avoidance).",
      steering: .tilt),
    CarMode(name: "Button Steering", info: "The left and the right half of the screen drive the car.", steering: .buttons),
    CarMode(
      name: "Button with AOA", info: "Like 'Button Steering', and the car stops before it hits something.", steering: .buttons),
    CarMode(name: "Follow line", info: "The car follows a line on the floor, and waits for what stands on it.", steering: .line),
    CarMode(
      name: "Stop sign", info: "Like 'Tilt, Lights', and the car stops at stop signs.", steering: .tiltWithIndicators, startsCamera: true),
    CarMode(name: "Traffic light", info: "Like 'Tilt Steering', and the car waits at a red light.", steering: .tilt, startsCamera: true),
    CarMode(
      name: "Speed limit", info: "Like 'Tilt, Lights', and the car keeps to limits it has seen, e.g. 50 %.", steering: .tiltWithIndicators,
      startsCamera: true),
    CarMode(
      name: "Tilt, Traffic rules, Light", info: "Like 'Tilt, Lights', with stop signs, red lights and limits.",
      steering: .tiltWithIndicators,
      startsCamera: true, stopsCamera: false),
    CarMode(
      name: "Self steering", info: "The car follows a line, with stop signs, red lights and limits, and takes voice commands.",
      steering: .line,
      startsCamera: true, stopsCamera: false, takesSpeech: true, leavesThreadRunning: true),
  ]

  /// The modes of the documented device.
  static let documented: [CarMode] = [
    CarMode(name: "Free", info: "Tilt to drive.", steering: .tilt),
    CarMode(name: "Free, with lights", info: "Tilt to drive, in the dark: buttons are indicators.", steering: .tiltWithIndicators),
    CarMode(name: "Indoors", info: "Tilt to drive, \"gently\" please.", steering: .tilt),
  ]

  /// Returns these modes and additional ones, so that the Modes frame is longer than one read.
  static func long(_ modes: [CarMode]) -> [CarMode] {
    modes
      + (modes.count..<60).map { number in
        CarMode(name: "Route \(number), around the house and back to the garage", info: "Route number \(number).", steering: .tilt)
      }
  }
}
