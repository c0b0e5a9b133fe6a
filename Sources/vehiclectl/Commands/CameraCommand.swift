// camera: commands for an RC car's camera. Without a subcommand, shows the status of the only device with a camera.

import ArgumentParser
import Protocols

struct CameraCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "camera", abstract: "Take a picture or record video with an RC car's camera.",
    discussion: "Without a subcommand, show the status of the device with a camera.",
    subcommands: [CameraSnapshotCommand.self, CameraRecordCommand.self])

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    let reference = try Reference(device: nil, name: Camera.urlProperty).property(of: try common.connect(output))
    try StatusCommand.show(reference.device, common, output)
  }
}
