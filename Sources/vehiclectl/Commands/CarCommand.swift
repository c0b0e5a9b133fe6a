// car: commands for an RC car's camera. Without a subcommand, shows the status of the device "car".

import ArgumentParser
import Protocols

struct CarCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "car", abstract: "Take a picture or record video with an RC car's camera.",
    discussion: "Without a subcommand, show the status of the device that is named car.",
    subcommands: [CarSnapshotCommand.self, CarRecordVideoCommand.self])

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws { try StatusCommand.show("car", common, output) }
}
