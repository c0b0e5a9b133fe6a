// web.toml: the shipped file and the manual page cover every key, and mistakes are named with their place.

import ArgumentParser
import ConfigurationFiles
import ConfigurationTesting
import Foundation
import Protocols
import Testing

@testable import vehicled_web

@Suite("Configuration of the web server") struct WebConfigurationTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized

  private func check(_ text: String) throws -> (configuration: WebConfiguration, problems: [String]) {
    var check = WebCheck()
    let configuration = check.configuration(try TOML.parse(Array(text.utf8), file: "f"))
    return (configuration, check.problems.map(\.description))
  }

  @Test func `keys have their defaults, and set what they name`() throws {
    let plain = try check("").configuration
    #expect(plain.listen == .tcp(host: "127.0.0.1", port: 8270) && plain.tokens.isEmpty && plain.metrics == nil && plain.origins.isEmpty)
    let (found, problems) = try check(
      """
      [web]
      listen = "unix:/run/vehicled-web/socket"
      origins = ["https://Car.example:443"]
      files = "/srv/page"
      [token.kiosk]
      file = "kiosk"
      kiosk = true
      [token.phone]
      file = "/etc/vehicled/phone.token"
      control = ["ev", "mirror"]
      [metrics]
      token-file = "prometheus"
      position = ["gps"]
      """)
    #expect(problems == [])
    #expect(found.listen == .unix(path: "/run/vehicled-web/socket") && found.origins.map(\.text) == ["https://car.example"])
    #expect(found.files == "/srv/page" && found.metrics == .init(tokenFile: "prometheus", positions: ["gps"]))
    #expect(
      found.tokens == [
        .init(name: "kiosk", file: "kiosk", rights: Rights(isKiosk: true)),
        .init(name: "phone", file: "/etc/vehicled/phone.token", rights: Rights(control: ["ev", "mirror"])),
      ])
  }

  @Test(arguments: [
    ("[web]\nlisten = \"0.0.0.0:80\"", "2:10: listen: \"0.0.0.0:80\" can be reached from other computers"),
    ("[web]\nlisten = \"[::]:80\"", "2:10: listen: \"[::]:80\" can be reached from other computers"),
    ("[web]\nlisten = \"8270\"", "2:10: listen: \"8270\" is not an address; write 127.0.0.1:PORT"),
    ("[web]\nlisten = \"127.0.0.1:99999\"", "2:10: listen: \"127.0.0.1:99999\" is not an address"),
    ("[web]\nlisten = \"unix:socket\"", "2:10: listen: \"unix:socket\" is not an address; write unix:/PATH"),
    ("[web]\norigins = [\"car.example\"]", "2:11: origins: \"car.example\" is not an origin; write https://HOST"),
    ("[web]\norigins = [\"https://car.example/x\"]", "2:11: origins: \"https://car.example/x\" is not an origin; write only"),
    ("[web]\nhosts = []", "2:1: unknown key \"hosts\""), ("[web]\nfiles = \"page\"", "2:9: files: \"page\" is not an absolute path"),
    ("[token.a]\ncontrol = []", "1:8: file is missing"), ("[token.a]\nfile = \"\"", "2:8: file is empty"),
    ("[token.a]\nfile = \"/f\"\ncontrol = \"ev\"", "3:11: control: \"ev\" is a string; write control = [\"ev\"]"),
    ("token = \"x\"", "1:1: token is a section, not a key; write [token.NAME]"),
    ("[token]\na = 1", "2:1: a is a section, not a key; write [token.a]"), ("[metrics]\nposition = []", "1:2: token-file is missing"),
    ("[metric]\ntoken-file = \"a\"", "1:2: unknown section \"metric\"; did you mean metrics?"),
  ])
  func `a mistake names its place and the remedy`(_ text: String, _ message: String) throws {
    let problems = try check(text).problems
    #expect(problems.count == 1 && problems.first?.contains(message) == true, "\(problems)")
  }

  @Test func `the shipped file shows every key with its default`() throws {
    let shipped = try String(contentsOf: Self.root.appendingPathComponent("etc/web.toml"), encoding: .utf8)
    #expect(try check(shipped).problems == [])
    let root = try TOML.parse(Array(ShippedFile.uncommented(shipped).utf8), file: "f")
    #expect(ShippedFile.problems(root, WebConfiguration.generalKeys, others: ["web", "token", "metrics"]) == [])
    for (path, keys) in [
      (["web"], WebConfiguration.webKeys), (["token", "kiosk"], WebConfiguration.tokenKeys), (["metrics"], WebConfiguration.metricsKeys),
    ] {
      let table = try path.reduce(root) { table, name in
        guard case .table(let inner)? = table[name]?.value.content else { throw ValueError("no section \(name)") }
        return inner
      }
      #expect(ShippedFile.problems(table, keys) == [])
    }
  }

  @Test func `the manual page documents every key and option`() throws {
    let page = try ManualPage(Self.root.appendingPathComponent("systemd/man/vehicled-web.8").path)
    #expect(page.problems(".Ss General keys", WebConfiguration.generalKeys) == [])
    #expect(page.problems(".Ss Section [web]", WebConfiguration.webKeys) == [])
    #expect(page.problems(".Ss Section [token.NAME]", WebConfiguration.tokenKeys) == [])
    #expect(page.problems(".Ss Section [metrics]", WebConfiguration.metricsKeys) == [])
    #expect(page.problems(options: WebCommand.helpMessage(includeHidden: false, columns: 100)) == [])
  }
}
