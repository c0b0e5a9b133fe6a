// camera snapshot: writes the first picture of a camera's stream to a file.

import ArgumentParser
import Glibc
import Protocols

struct CameraSnapshotCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshot", abstract: "Save a picture from an RC car's camera as JPEG.",
    usage: "vehiclectl camera snapshot [<options>] [<device>] <file>",
    discussion: "Switch the video on first: vehiclectl set car.video on")

  @OptionGroup var common: CommonOptions
  @OptionGroup var target: CameraFile

  func perform(_ output: Output) throws {
    let (device, file, force) = try target.checked()
    Interrupt.catchSignals()
    let camera = try Camera(of: device, try common.connect(output))
    let deadline = Clock.monotonic + common.replyTimeout
    let stream = try VideoStream(camera.url, within: common.replyTimeout)
    guard let picture = try stream.next(within: deadline - Clock.monotonic) else {
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
