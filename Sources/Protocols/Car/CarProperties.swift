// The properties and actions of a car: names, units, ranges, words. The order of the cases is the order of the schema; the
// lines of the car's status that nobody foresaw come behind them while it runs.

/// A property of a `car`; its raw value is its position in the schema.
enum CarSignal: Int, CaseIterable, Sendable {
  case connected, running, mode, modeNumber, modes
  case roll, pitch, yaw, tiltRate
  case leftButton, rightButton, buttonsEnabled, speechEnabled
  case motorBatteryVoltage, piBatteryVoltage, temperature, cpuUsage, memoryUsed, memoryFree, diskUsed, diskFree
  case status, message
  case video, videoQuality, videoURL, webPage
  case sensitivity, neutralRoll, neutralPitch, neutralYaw
  case messages, badFrames

  static let tilts = [roll, pitch, yaw]
  static let lines = motorBatteryVoltage.rawValue...diskFree.rawValue

  /// The schema's rows.
  static func properties(_ options: CarOptions) -> [Property] { allCases.map { $0.property(options) } }

  /// How long what the status says is shown: three times the interval at which it is asked for.
  static func statusLifetime(_ options: CarOptions) -> Property.Lifetime {
    options.statusInterval.map { .fresh(max(3 * $0, 6 * .second)) } ?? .whileUp
  }

  private func property(_ options: CarOptions) -> Property {
    var property = declaration
    switch self {
    case .mode, .leftButton, .rightButton, .video: property.access = .write
    case .sensitivity, .neutralRoll, .neutralPitch, .neutralYaw, .webPage, .videoQuality:
      property.access = .write
      property.remembered = true
      property.lifetime = .retained
    // What the wheels may do while the link is down the machine itself says.
    case .running, .message, .videoURL, .messages, .badFrames: property.lifetime = .retained
    case .status: property.lifetime = Self.statusLifetime(options)
    case _ where Self.lines.contains(rawValue): property.lifetime = Self.statusLifetime(options)
    default: break
    }
    return property
  }

  private var declaration: Property {
    switch self {
    case .connected: row("connected", .bool, "The car answers")
    case .running: row("running", .bool, "on: the car was told Continue; off: it has confirmed Stop; absent: it may be driving")
    case .mode: row("mode", .string, "How the car drives, by name or number; choosing one stops it")
    case .modeNumber: row("mode-number", .int, nil, 0...Double(CarModes.most - 1), "Place of the mode in the car's list, from 0")
    case .modes: row("modes", .list, "The modes that the car offers")
    case .roll: row("roll", .float, "rad", -3.1416...3.1416, "Tilt ahead as it was sent last; negative is backwards")
    case .pitch: row("pitch", .float, "rad", -1.5708...1.5708, "Tilt to the right as it was sent last; negative is left")
    case .yaw: row("yaw", .float, "rad", -3.1416...3.1416, "Turn of the phone as it was sent last; the car as built ignores it")
    case .tiltRate: row("tilt-rate", .float, "Hz", 5...100, "Set-points a second, as the car asks for them or as configured")
    case .leftButton: row("left-button", .bool, "The left half of the screen is pressed; an indicator in most modes")
    case .rightButton: row("right-button", .bool, "The right half of the screen is pressed; an indicator in most modes")
    case .buttonsEnabled: row("buttons-enabled", .bool, "The car wants the buttons")
    case .speechEnabled: row("speech-enabled", .bool, "The car wants spoken words, which it then does not understand")
    case .motorBatteryVoltage: row("motor-battery-voltage", .float, "V", 0...100, "Battery of the motors")
    case .piBatteryVoltage: row("pi-battery-voltage", .float, "V", 0...100, "Battery of the Raspberry Pi")
    case .temperature: row("temperature", .float, "°C", -60...200, "The Raspberry Pi's processor")
    case .cpuUsage: row("cpu-usage", .float, "%", 0...10_000, "Use of the Raspberry Pi's processor")
    case .memoryUsed: row("memory-used", .float, "MB", 0...1e9, "Memory in use")
    case .memoryFree: row("memory-free", .float, "MB", 0...1e9, "Memory that is free")
    case .diskUsed: row("disk-used", .float, "GB", 0...1e9, "Disk in use; the car calls it GB whatever it is")
    case .diskFree: row("disk-free", .float, "GB", 0...1e9, "Disk that is free; the car calls it GB whatever it is")
    case .status: row("status", .list, "The lines of the car's status as they came")
    case .message: row("message", .string, "What the car said last to whoever drives it")
    case .video: row("video", .bool, "The camera's stream; switched only while nobody drives")
    case .videoQuality:
      Property(
        "video-quality", .string, choices: CarVideoQuality.allCases.map(\.rawValue),
        help: "360x240, 568x300 or 760x460; from the next time that video is switched on")
    case .videoURL: row("video-url", .string, "Where the camera's stream is read, as MJPEG over HTTP")
    case .webPage: row("web-page", .string, "A page to look at while driving; empty gives the car's own back")
    case .sensitivity: row("sensitivity", .float, nil, 0.67...1.33, "What a tilt is multiplied with")
    case .neutralRoll: row("neutral-roll", .float, "rad", -3.1416...3.1416, "Roll at which the car stands")
    case .neutralPitch: row("neutral-pitch", .float, "rad", -1.5708...1.5708, "Pitch at which the car goes straight")
    case .neutralYaw: row("neutral-yaw", .float, "rad", -3.1416...3.1416, "Yaw that counts as none")
    case .messages: row("messages", .int, "Messages of any kind that were heard from the car since the daemon started")
    case .badFrames: row("bad-frames", .int, "Messages of the car that were dropped because they could not be read")
    }
  }

  private func row(
    _ name: String, _ type: ValueType, _ unit: String? = nil, _ range: ClosedRange<Double>? = nil, _ help: String
  ) -> Property {
    Property(name, type, unit: unit, range: range, lifetime: .whileUp, help: help)
  }

  private func row(_ name: String, _ type: ValueType, _ help: String) -> Property { row(name, type, nil, nil, help) }
}

/// An action of a `car`; its raw value is its position in the schema.
enum CarAction: Int, CaseIterable, Sendable {
  case tilt, proceed, stop, modeInfo, refresh, neutral, sendMessage, shutDown

  static let actions = allCases.map(\.declaration)

  private var declaration: Action {
    switch self {
    case .tilt:
      Action(
        "tilt",
        arguments: [
          Argument("roll", .float, help: "rad, -π to π; positive drives ahead"),
          Argument("pitch", .float, help: "rad, -π/2 to π/2; positive turns right"),
          Argument("yaw", .float, optional: true, help: "rad, -π to π; usually 0"),
          Argument("relative", .bool, optional: true, help: "The angles count from the neutral position, as those of keys and sticks do"),
        ], motion: true, help: "One set-point; the first one of a lease lets the car drive")
    case .proceed: Action("continue", motion: true, help: "Let the car drive on after a stop or another mode")
    case .stop: Action("stop", help: "Stop the car at once; it drives on only after continue")
    case .modeInfo:
      Action(
        "mode-info", arguments: [Argument("mode", .string, optional: true, help: "A mode's name or number; usually all of them")],
        streams: true, help: "What the modes do, in the car's words")
    case .refresh: Action("refresh", help: "Ask the car for its status now; only while nobody drives")
    case .neutral:
      Action(
        "neutral", arguments: [Argument("position", .string, help: "here: as the driver holds it now; horizontal: level")],
        help: "Take a position as the one at which the car stands, and remember it")
    case .sendMessage:
      Action(
        "send-message", arguments: [Argument("text", .string, help: "One line of ASCII")],
        help: "Send the car a text; only with allow-messages = true, and the car as built has no receiver for it")
    case .shutDown:
      Action("shut-down", help: "Stop the car and tell it to shut down; the car as built only starts its program anew")
    }
  }
}
