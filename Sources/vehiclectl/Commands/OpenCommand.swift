// open: the address of a device's page, bare, so that a script or a person can open it: xdg-open "$(vehiclectl open car)".

import ArgumentParser
import Protocols

struct OpenCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "open", abstract: "Print the address of a device's web page.",
    discussion: "With a browser: xdg-open \"$(vehiclectl open)\". The page is whatever was set: vehiclectl set car.web-page URL")

  private static let page = "web-page"

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device, where several have a page.", completion: .devices(with: OpenCommand.page))
  var device: String?

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    let reference = Reference(device: device, name: Self.page)
    let found = try reference.property(in: try reference.schemas(client)).device
    let page = try Reference(device: found, name: Self.page).text(client)
    if output.json {
      output.json(["device": .string(found), Self.page: .string(page)])
    } else {
      output.line(Output.oneLine(page))
    }
  }
}
