// The operands of the commands that write pictures from a camera to a file: `FILE` or `DEVICE FILE`.

import ArgumentParser
import Glibc

struct CameraFile: ParsableArguments {
  @Flag(help: "Overwrite an existing file.")
  var force = false
  @Argument(
    help: ArgumentHelp("The device; required if more than one device has a camera.", valueName: "device"),
    completion: .devices(with: Camera.urlProperty))
  var first: String
  @Argument(help: ArgumentHelp("The file to write; - is stdout.", valueName: "file"), completion: .file())
  var second: String?

  /// Returns the operands. Fails if the file exists without --force, is a directory, or is a terminal.
  func checked() throws -> (device: String?, file: String, force: Bool) {
    let (device, file) = second.map { (first, $0) } ?? (nil, first)
    if file == "-", Terminal.isTerminal(STDOUT_FILENO) {
      throw Failure.usage("stdout is a terminal; specify a file, or redirect stdout")
    }
    if file != "-" { try AtomicFile.check(file, force: force) }
    return (device, file, force)
  }
}
