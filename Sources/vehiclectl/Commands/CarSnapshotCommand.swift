// car snapshot: writes the first picture of a camera's stream to a file.

import ArgumentParser
import Glibc
import Protocols

struct CarSnapshotCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshot", abstract: "Save one image from an RC car's camera as JPEG.",
    usage: "vehiclectl car snapshot [<options>] [<device>] <file>",
    discussion: "Switch the video on first: vehiclectl set car.video on")

  @OptionGroup var common: CommonOptions
  @Flag(help: "Overwrite an existing file.")
  var force = false
  @Argument(
    help: ArgumentHelp("The device; required if more than one device has a camera.", valueName: "device"),
    completion: .devices(with: Camera.address))
  var first: String
  @Argument(help: ArgumentHelp("The file to write, - for stdout.", valueName: "file"), completion: .file())
  var second: String?

  func perform(_ output: Output) throws {
    let (device, file) = Camera.operands(first, second)
    try Camera.refuseTerminal(file)
    if file != "-" { try AtomicFile.check(file, force: force) }
    Interrupt.catchSignals()
    let camera = try Camera(of: device, try common.connect(output))
    let limit = Clock.monotonic + common.replyTimeout
    let stream = try VideoStream(camera.url, within: common.replyTimeout)
    guard let picture = try stream.next(within: limit - Clock.monotonic) else {
      throw Interrupt.received ? Failure.other("interrupted") : .timeout(seconds: common.replyTimeout)
    }
    guard file != "-" else { return output.bytes(picture) }
    try AtomicFile.write(picture, to: file, force: force)
    if output.json {
      output.json(["device": .string(camera.device), "file": .string(file), "bytes": .int(picture.count)])
    } else {
      output.note("wrote \(file): \(picture.count) bytes")
    }
  }
}
