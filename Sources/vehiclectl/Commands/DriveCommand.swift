// drive: takes the motion lease of a device and passes set-points on: a line of JSON each from a program, or a person's keys,
// stick or wheel.

import ArgumentParser
import Glibc
import Protocols

struct DriveCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "drive", abstract: "Drive a device, with keys, a gamepad, or set-points from stdin.",
    discussion: """
      On a terminal a car is driven with the arrow keys or WASD; space stops it, Enter lets it go on, comma and dot press and release \
      its left and right buttons, q ends. A device without the \
      action tilt, as a longboard, is not driven from a terminal: pipe set-points into it. Elsewhere each line \
      of stdin is an object: one motion property, as in {"target-current": 2.5}, the arguments of a motion action, as in \
      {"roll": 0.1, "pitch": 0}, or any action by name, as in {"do": "stop"}; "vehiclectl describe" lists them. A line counts \
      as it is read: of several set-points that wait only the last is passed on. One must \
      come within every deadline, or the lease is lost and the vehicle is stopped; so it is at the end of the input, on Ctrl-C, \
      and when the link or the daemon fails. One drives at a time.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String
  @Option(help: ArgumentHelp("How long set-points may stay away, in milliseconds.", valueName: "ms"))
  var deadline = Contract.Drive.usualDeadline
  @Option(
    help: ArgumentHelp("Drive with a gamepad or wheel: the first one there is, or this input device.", valueName: "gamepad|path"),
    completion: .inputs)
  var input: String?

  /// The word for whichever there is.
  static let anyInput = "gamepad"

  func validate() throws {
    guard Contract.Drive.deadlines.contains(deadline) else {
      throw ValidationError(
        "--deadline \(deadline) is not possible: give \(Contract.Drive.deadlines.lowerBound) to \(Contract.Drive.deadlines.upperBound)")
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
      throw Failure.usage("\(device) has no action tilt, so no stick can drive it; give it lines: \(driveSchema.example)")
    }
    if isAtTerminal {
      throw Failure.usage(
        "\(device) cannot be driven from a terminal: it has no tilt to steer with keys, and nobody types a line every \(deadline) ms; pipe "
          + "set-points into it: PROGRAM | vehiclectl drive \(device), with lines of \(driveSchema.example)")
    }
    var drive = PipeDrive(common, output, driveSchema, deadline: deadline)
    try drive.run(holder: holder)
  }
}
