// The properties and actions of a car. The order of the cases is the order of the schema; properties from unknown status lines are
// appended at run time.

/// A property of an `rc-car` device; its raw value is its position in the schema.
enum CarProperty: Int, CaseIterable, Sendable {
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

  /// The range of each property.
  static let ranges = allCases.map(\.declaration.range)

  /// The rows of the schema.
  static func properties(_ options: CarOptions) -> [Property] { allCases.map { $0.property(options) } }

  /// The lifetime of status values: three status intervals.
  static func statusLifetime(_ options: CarOptions) -> Property.Lifetime {
    options.statusInterval.map { .fresh(max(3 * $0, 6 * .second)) } ?? .whileUp
  }

  private func property(_ options: CarOptions) -> Property {
    var property = declaration
    (property.group, property.rank) = (group, rank)
    switch self {
    case .mode, .leftButton, .rightButton, .video: property.access = .write
    case .sensitivity, .webPage, .videoQuality:
      property.access = .write
      property.persisted = true
      property.lifetime = .retained
    // CarSettings stores the three angles as one value.
    case .neutralRoll, .neutralPitch, .neutralYaw:
      property.access = .write
      property.lifetime = .retained
    // `running` is also meaningful while the link is down, so the machine itself withdraws it.
    case .running, .message, .videoURL, .messages, .badFrames: property.lifetime = .retained
    case .status: property.lifetime = Self.statusLifetime(options)
    case _ where Self.lines.contains(rawValue): property.lifetime = Self.statusLifetime(options)
    default: break
    }
    return property
  }

  private var group: PropertyGroup {
    switch self {
    case .connected, .running, .mode, .modeNumber, .modes, .roll, .pitch, .yaw, .tiltRate, .leftButton, .rightButton, .buttonsEnabled,
      .speechEnabled:
      .drive
    case .motorBatteryVoltage, .piBatteryVoltage: .battery
    case .temperature: .temperatures
    case .cpuUsage, .memoryUsed, .memoryFree, .diskUsed, .diskFree, .status, .message: .diagnostics
    case .video, .videoQuality, .videoURL, .webPage: .display
    case .sensitivity, .neutralRoll, .neutralPitch, .neutralYaw: .settings
    case .messages, .badFrames: .statistics
    }
  }

  private var rank: PropertyRank {
    switch self {
    case .running, .mode, .motorBatteryVoltage: .headline
    case .modeNumber, .modes, .yaw, .tiltRate, .buttonsEnabled, .speechEnabled, .memoryUsed, .memoryFree, .diskUsed, .diskFree, .status,
      .videoURL, .webPage, .neutralRoll, .neutralPitch, .neutralYaw:
      .detail
    case .messages, .badFrames: .statistic
    default: .main
    }
  }

  private var declaration: Property {
    switch self {
    case .connected: row("connected", .bool, "The car responds")
    case .running: row("running", .bool, "on: Continue was sent; off: the car has confirmed Stop; absent: it may be driving")
    case .mode: row("mode", .string, "Driving mode, by name or number; a change stops the car")
    case .modeNumber: row("mode-number", .int, nil, 0...Double(CarModes.maxCount - 1), "Position of the mode in the car's list, from 0")
    case .modes: row("modes", .list, "Modes of the car")
    case .roll: row("roll", .float, "rad", -3.1416...3.1416, "Last roll sent; positive is forward, negative is backward")
    case .pitch: row("pitch", .float, "rad", -1.5708...1.5708, "Last pitch sent; positive is right, negative is left")
    case .yaw: row("yaw", .float, "rad", -3.1416...3.1416, "Last yaw sent; AutoTT's program ignores it")
    case .tiltRate: row("tilt-rate", .float, "Hz", 5...100, "Setpoints per second, as requested by the car or configured")
    case .leftButton: row("left-button", .bool, "The left button (half of the app's screen) is pressed; an indicator in most modes")
    case .rightButton: row("right-button", .bool, "The right button (half of the app's screen) is pressed; an indicator in most modes")
    case .buttonsEnabled: row("buttons-enabled", .bool, "The car accepts buttons")
    case .speechEnabled: row("speech-enabled", .bool, "The car requests speech input, which AutoTT's program does not implement")
    case .motorBatteryVoltage: row("motor-battery-voltage", .float, "V", 0...100, "Voltage of the motor battery")
    case .piBatteryVoltage: row("pi-battery-voltage", .float, "V", 0...100, "Voltage of the Raspberry Pi's battery")
    case .temperature: row("temperature", .float, "°C", -60...200, "CPU temperature of the Raspberry Pi")
    case .cpuUsage: row("cpu-usage", .float, "%", 0...10_000, "CPU usage of the Raspberry Pi")
    case .memoryUsed: row("memory-used", .float, "MB", 0...1e9, "Used memory")
    case .memoryFree: row("memory-free", .float, "MB", 0...1e9, "Free memory")
    case .diskUsed: row("disk-used", .float, "GB", 0...1e9, "Used disk space; the car always labels it GB")
    case .diskFree: row("disk-free", .float, "GB", 0...1e9, "Free disk space; the car always labels it GB")
    case .status: row("status", .list, "Lines of the car's status, as received")
    case .message: row("message", .string, "Last message from the car to the driver")
    case .video: row("video", .bool, "Camera stream; cannot be switched while the car is driven")
    case .videoQuality:
      Property(
        "video-quality", .string, choices: CarVideoQuality.allCases.map(\.rawValue),
        help: "360x240, 568x300 or 760x460; takes effect when the video is switched on")
    case .videoURL: row("video-url", .string, "URL of the camera stream (MJPEG over HTTP)")
    case .webPage: row("web-page", .string, "Web page to show while driving; empty: the car's own page")
    case .sensitivity: row("sensitivity", .float, nil, 0.67...1.33, "Factor applied to each tilt")
    case .neutralRoll: row("neutral-roll", .float, "rad", -3.1416...3.1416, "Roll of the neutral position")
    case .neutralPitch: row("neutral-pitch", .float, "rad", -1.5708...1.5708, "Pitch of the neutral position")
    case .neutralYaw: row("neutral-yaw", .float, "rad", -3.1416...3.1416, "Yaw of the neutral position")
    case .messages: row("messages", .int, "Messages received from the car since the daemon started")
    case .badFrames: row("bad-frames", .int, "Messages from the car that could not be parsed")
    }
  }

  private func row(
    _ name: String, _ type: ValueType, _ unit: String? = nil, _ range: ClosedRange<Double>? = nil, _ help: String
  ) -> Property {
    Property(name, type, unit: unit, range: range, lifetime: .whileUp, help: help)
  }

  private func row(_ name: String, _ type: ValueType, _ help: String) -> Property { row(name, type, nil, nil, help) }
}

/// An action of an `rc-car` device; its raw value is its position in the schema.
enum CarAction: Int, CaseIterable, Sendable {
  case tilt, proceed, stop, modeInfo, refresh, neutral, sendMessage, shutDown

  static let actions = allCases.map(\.declaration)

  private var declaration: Action {
    switch self {
    case .tilt:
      Action(
        "tilt",
        arguments: [
          Argument("roll", .float, help: "rad, -π to π; positive is forward"),
          Argument("pitch", .float, help: "rad, -π/2 to π/2; positive is right"),
          Argument("yaw", .float, optional: true, help: "rad, -π to π; default: 0"),
          Argument("relative", .bool, optional: true, help: "The angles are relative to the neutral position, as with keys and gamepads"),
        ], motion: true, help: "Send one setpoint; the first one of a lease starts the car")
    case .proceed: Action("continue", motion: true, help: "Continue to drive after a stop or a change of mode")
    case .stop: Action("stop", help: "Stop the car immediately; it moves again only after continue")
    case .modeInfo:
      Action(
        "mode-info", arguments: [Argument("mode", .string, optional: true, help: "Name or number of a mode; default: all")],
        streams: true, help: "Show the car's descriptions of its modes")
    case .refresh: Action("refresh", help: "Request the car's status now; not possible while the car is driven")
    case .neutral:
      Action(
        "neutral", arguments: [Argument("position", .string, help: "here: the current tilt of the driver; horizontal: level")],
        help: "Set and store the neutral position")
    case .sendMessage:
      Action(
        "send-message", arguments: [Argument("text", .string, help: "One line of ASCII")],
        help: "Send a text to the car; requires allow-messages = true, and AutoTT's program ignores it")
    case .shutDown:
      Action("shut-down", help: "Stop the car and shut it down; AutoTT's program only restarts itself")
    }
  }
}
