// drive: acquires the motion lease of a device and sends set-points: from lines of JSON, keys, a gamepad or a wheel.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct DriveCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "drive", abstract: "Drive with keys, a gamepad, or set-points from stdin.",
    discussion: """
      On a terminal, drive an RC car with the arrow keys or WASD. Space stops it and Enter continues. The keys 1 to 9 limit the \
      tilt, and so speed and steering, to 10 to 90 %, and 0 allows 100 %; the limit starts at 40 %. "," and "." toggle the car's left and \
      right buttons (its indicators). q quits. On a gamepad or wheel, A continues, B stops, the shoulder buttons act as the car's \
      buttons, and Start quits. A device without the action tilt, such as a longboard, cannot be driven from a terminal: pipe set-points \
      into the command.
      If stdin is not a terminal, each line of it is a JSON object. It is a set-point: a motion property, such as \
      {"target-current": 2.5}, or the arguments of a motion action, such as {"roll": 0.1, "pitch": 0}. Or it runs an action by its name, \
      such as {"do": "stop"}. "vehiclectl describe" lists them. If several set-points are queued, only the last one is sent.
      Only one client can drive a device at a time: the one that holds its motion lease. If no set-point arrives within the deadline, the \
      command loses the lease, and the vehicle stops. The vehicle also stops at the end of the input, on Ctrl-C, and if the link or the \
      daemon fails.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String
  @Option(help: ArgumentHelp("Maximum time between set-points in ms, 100 to 5000.", valueName: "ms"))
  var deadline = Contract.Drive.defaultDeadline
  @Option(
    help: ArgumentHelp("Drive with the first gamepad or wheel, or with this input device.", valueName: "gamepad|path"),
    completion: .inputs)
  var input: String?

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
    let input = try input.map { path throws(Failure) in try path == Self.anyInput ? InputDevice.first() : InputDevice(path: path) }
    let holder = try common.connect(output)
    let schema = try holder.call(Contract.Describe.self, Contract.Describe.Parameters(device: device)).schemas.first
    let driveSchema = DriveSchema(device: device, schema)
    let isAtTerminal = !output.json && Terminal.isTerminal(STDIN_FILENO) && Terminal.isTerminal(STDOUT_FILENO)
    if driveSchema.tilt != nil, isAtTerminal || input != nil {
      var drive = ManualDrive(
        common, output, driveSchema, watching: schema?.properties.map(\.name) ?? [], deadline: deadline, input: input,
        terminal: isAtTerminal ? RawTerminal(STDIN_FILENO) : nil, screen: isAtTerminal ? Screen(output) : nil)
      return try drive.run()
    }
    if input != nil {
      throw Failure.usage("cannot drive \(device) with --input: it has no action tilt; pipe lines into vehiclectl: \(driveSchema.example)")
    }
    if isAtTerminal {
      throw Failure.usage(
        "cannot drive \(device) from a terminal: it has no action tilt; pipe set-points into vehiclectl, at least one every "
          + "\(deadline) ms: PROGRAM | vehiclectl drive \(device), with lines of \(driveSchema.example)")
    }
    var drive = PipeDrive(common, output, driveSchema, deadline: deadline)
    try drive.run(holder: holder)
  }
}
