// web-page: the URL of a device's web page, for scripts and browsers.

import ArgumentParser
import Protocols

struct WebPageCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "web-page", abstract: "Print the URL of a device's web page.",
    discussion: "To open it in a browser: xdg-open \"$(vehiclectl web-page)\". To change it: vehiclectl set car.web-page URL",
    aliases: ["open"])

  private static let page = "web-page"

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device; required if more than one device has a web page.", completion: .devices(with: WebPageCommand.page))
  var device: String?

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    let name = try Reference(device: device, name: Self.page).property(of: client).device
    let page = try Reference(device: name, name: Self.page).text(client)
    if output.json {
      output.json(["device": .string(name), "webPage": .string(page)])
    } else {
      output.line(Output.oneLine(page))
    }
  }
}
