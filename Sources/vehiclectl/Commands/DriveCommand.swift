// drive: acquires the motion lease of a device and sends setpoints: from lines of JSON, keys, a gamepad or a wheel.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct DriveCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "drive", abstract: "Drive with keys, a gamepad, or setpoints from stdin.",
    discussion: """
      On a terminal, drive with the arrow keys or WASD. The keys 1 to 9 limit the setpoints to 10 to 90 %, and 0 allows 100 %. q quits.
      An RC car (a device with the action tilt): space stops it and Enter continues; the limit of the tilt, and so of speed and steering, \
      starts at 40 %. "," and "." toggle the car's left and right buttons (its indicators). On a gamepad or wheel, A continues, B stops, \
      the shoulder buttons act as the car's buttons, and Start quits.
      A longboard (a device with a motion property target-…): hold the up key for throttle, which rises to its limit within a second, and \
      the down key to brake. Space sets zero; the limit starts at 20 %. If a keyboard in /dev/input can be read (group input), releasing \
      the key sets zero at once. A terminal reports no releases: without such a keyboard, the throttle opens when the key repeats, and is \
      zero at most 0.25 s after the last key event (the brake: 0.65 s). Over ssh, a key whose release is delayed looks like a held key; \
      the command therefore refuses to control a throttle with keys unless --force is given.
      If stdin is not a terminal, each line of it is a JSON object: a setpoint or an action. A setpoint is a motion property, such as \
      {"target-current": 2.5}, or the arguments of a motion action, such as {"roll": 0.1, "pitch": 0}. An object such as {"do": "stop"} \
      runs an action by its name. "vehiclectl describe" lists them. If several setpoints are queued, only the last one is sent.
      Only the client that holds the motion lease of a device can drive it. If no setpoint arrives within the deadline, the command loses \
      the lease, and the vehicle stops. The vehicle also stops at the end of the input, on Ctrl-C and Ctrl-Z, if the terminal is closed or \
      loses the focus, if the input device is unplugged, and if the link or the daemon fails.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String
  @Option(help: ArgumentHelp("Maximum time between setpoints in ms, 100 to 5000.", valueName: "ms"))
  var deadline = Contract.Drive.defaultDeadline
  @Option(
    help: ArgumentHelp("Drive with the first gamepad or wheel, or with this input device.", valueName: "gamepad|path"),
    completion: .inputs)
  var input: String?

  @Flag(help: "Control a throttle with keys over ssh, although a delayed key release looks like a held key.")
  var force = false

  /// The value of --input for the first device found.
  static let anyInput = "gamepad"

  func validate() throws {
    guard Contract.Drive.deadlines.contains(deadline) else {
      throw ValidationError(
        "invalid --deadline \(deadline); use \(Contract.Drive.deadlines.lowerBound) to \(Contract.Drive.deadlines.upperBound)")
    }
  }

  func perform(_ output: Output) throws {
    Interrupt.catchSignals()
    let isDumb = Environment["TERM"] == "dumb"
    let hasTerminal = !output.json && Terminal.isTerminal(STDIN_FILENO) && Terminal.isTerminal(STDOUT_FILENO)
    guard input != nil || !hasTerminal || !isDumb else {
      throw Failure.usage(
        "cannot drive \(device) with keys: this terminal cannot show the screen (TERM=dumb); use another terminal, or a gamepad "
          + "with --input"
      )
    }
    let stick = try input.map { path throws(Failure) in try path == Self.anyInput ? Gamepad.first() : Gamepad(path: path) }
    let holder = try common.connect(output)
    let schema = try holder.call(Contract.Describe.self, Contract.Describe.Parameters(device: device)).schemas.first
    let driveSchema = DriveSchema(device: device, schema)
    let isAtTerminal = hasTerminal && !isDumb
    if isAtTerminal || stick != nil {
      let control = try control(driveSchema)
      if control.needsTimelyRelease, stick == nil { try checkTerminalIsLocal() }
      let inputs = DriveInputs(
        terminal: isAtTerminal ? RawTerminal(STDIN_FILENO) : nil, stick: stick,
        keyboard: control.needsTimelyRelease && stick == nil ? EventKeyboard() : nil)
      var drive = try ManualDrive(
        common, output, driveSchema, control, described: schema, deadline: deadline, inputs: inputs,
        screen: isAtTerminal ? FullScreen(colour: output.colour, reportsFocus: true) : nil)
      return try drive.run()
    }
    var drive = PipeDrive(common, output, driveSchema, deadline: deadline)
    try drive.run(holder: holder)
  }

  /// How to drive the device by hand.
  private func control(_ schema: DriveSchema) throws(Failure) -> any ManualControl {
    if let control = schema.control { return control }
    guard schema.moves else {
      throw .usage(
        "cannot drive \(device): it has no motion properties or actions; a VESC has them with allow-motion = true in its section")
    }
    throw .usage(
      "cannot drive \(device) by hand: it has neither the action tilt nor a motion property target-…; pipe setpoints into vehiclectl, at "
        + "least one every \(deadline) ms: PROGRAM | vehiclectl drive \(device), with lines of \(schema.example)")
  }

  /// Rejects a terminal whose keys can be delayed by a network.
  private func checkTerminalIsLocal() throws(Failure) {
    guard !force, let variable = ["SSH_CONNECTION", "SSH_TTY"].first(where: { Environment[$0] != nil }) else { return }
    throw .usage(
      "cannot drive \(device) with keys over ssh (\(variable) is set): if the network fails, a key looks held until the timeout; use a "
        + "gamepad on this machine with --input, or --force")
  }
}
