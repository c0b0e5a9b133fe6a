// car snapshot: the first picture of a camera's stream, as it came, into a file that vehiclectl itself writes.

import ArgumentParser
import Glibc
import Protocols

struct CarSnapshotCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "snapshot", abstract: "Save one picture of a car's camera.",
    usage: "vehiclectl car snapshot [<options>] [<device>] <file>",
    discussion: "The video has to be on: vehiclectl set car.video on. The device may be left out where just one has a camera.")

  @OptionGroup var common: CommonOptions
  @Flag(help: "Overwrite the file.")
  var force = false
  @Argument(
    help: ArgumentHelp("The device, where there are several cameras.", valueName: "device"), completion: .devices(with: Camera.address))
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
      output.note("\(file): \(picture.count) bytes")
    }
  }
}
