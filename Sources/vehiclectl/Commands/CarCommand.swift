// car: what the camera of a car is good for. Alone it is the status of a device of that name, as any other name is.

import ArgumentParser
import Protocols

struct CarCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "car", abstract: "Take a picture with a car's camera, or record its video.",
    discussion: "Without a subcommand: the status of the device \"car\".",
    subcommands: [CarSnapshotCommand.self, CarRecordVideoCommand.self])

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws { try StatusCommand.show("car", common, output) }
}
