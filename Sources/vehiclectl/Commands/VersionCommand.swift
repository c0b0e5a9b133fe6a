// version: the versions of vehiclectl and of the daemon.

import ArgumentParser
import Protocols
import Varlink

struct VersionCommand: Subcommand {
  static let configuration = CommandConfiguration(commandName: "version", abstract: "Print the versions of vehiclectl and the daemon.")

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    if !output.json { output.line("vehiclectl \(version)") }
    let info = try common.connect(output).call(VarlinkService.GetInfo.self, .init())
    if output.json {
      let daemon: JSON = [
        "vendor": .string(info.vendor), "product": .string(info.product), "version": .string(info.version), "url": .string(info.url),
        "interfaces": .array(info.interfaces.map(JSON.string)),
      ]
      return output.json(["vehiclectl": ["version": .string(version)], "vehicled": daemon])
    }
    output.line(Output.oneLine("\(info.product) \(info.version) (\(info.interfaces.joined(separator: ", ")))"))
  }
}
