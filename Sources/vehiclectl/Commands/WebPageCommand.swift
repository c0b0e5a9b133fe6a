// web-page: the URL of a device's web page, for scripts and browsers.

import ArgumentParser
import Protocols

struct WebPageCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "web-page", abstract: "Print the URL of a device's web page.",
    discussion: "To open it in a browser: xdg-open \"$(vehiclectl web-page)\". To change it: vehiclectl set car.web-page URL")

  private static let property = "web-page"

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device; required if more than one device has a web page.", completion: .devices(with: WebPageCommand.property))
  var device: String?

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    let device = try Reference(device: device, name: Self.property).property(of: client).device
    let url = try Reference(device: device, name: Self.property).text(client)
    if output.json {
      output.json(["device": .string(device), "webPage": .string(url)])
    } else {
      output.line(Output.oneLine(url))
    }
  }
}
