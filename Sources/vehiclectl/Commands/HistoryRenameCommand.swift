// history rename: gives the recorded values of a device another name.

import ArgumentParser
import Protocols
import Varlink

struct HistoryRenameCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "rename", abstract: "Rename a device in the history.",
    discussion: """
      Use this after a device was renamed in vehicled.toml. Values that were recorded under the new name since then are joined with the \
      older ones; this fails if both devices have values at the same time. With --json: {}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Argument(help: "The device.", completion: .recordedDevices)
  var device: String
  @Argument(help: "The new name.")
  var name: String

  func perform(_ output: Output) throws {
    _ = try history.connectForLongCalls(common, output).call(HistoryContract.RenameMethod.self, .init(device: device, name: name))
    if output.json { output.json([:]) } else { output.note("renamed \(device) to \(name)") }
  }
}
