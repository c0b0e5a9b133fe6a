// toy wifi: sends the toy the name and password of a Wi-Fi network. All input is read and checked before the button is pressed, because the
// toy waits less than a minute.

import ArgumentParser
import Glibc
import Protocols

struct ToyWifiCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "wifi", abstract: "Connect the toy to a Wi-Fi network.", usage: usage,
    discussion: """
      The command prompts for the network, if you do not name one, and for its password. If NetworkManager is available, the command \
      lists the networks in range. Without a terminal, the first line of stdin is the password; leave it empty for an open network. The \
      daemon listens for the toy on TCP port 8080; allow this port in the firewall. Ctrl-C cancels. With --join, this computer temporarily \
      joins the toy's network through NetworkManager.
      """)

  private static let usage = "vehiclectl toy wifi [<options>] [<network>]"

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Option(
    defaultAsFlag: ToyNetwork.defaultName, parsing: .next,
    help: ArgumentHelp("Join the toy's own network for the setup; if it is not named Trivio: --join=ESP_A1B2C3.", valueName: "network"))
  var join: String?
  @Option(help: ArgumentHelp("Connect to a toy that listens for connections, as its documentation describes.", valueName: "host[:port]"))
  var dial: String?
  @Argument(help: "The name of the Wi-Fi network; it must use 2.4 GHz.")
  var network: String?
  @Argument(parsing: .allUnrecognized, help: .hidden)
  var extra: [String] = []

  func perform(_ output: Output) throws {
    try Self.rejectExtra(extra, Self.usage)
    if let join, !ToyWiFi.nameLength.contains(join.utf8.count) {
      throw Failure.usage("invalid --join: the name has \(join.utf8.count) bytes; use 1 to 32 bytes")
    }
    Interrupt.catchSignals()
    let toy = try open(output)
    let isInteractive = network == nil && Prompt.isInteractive
    let networks = join != nil || isInteractive ? NetworkManager() : nil
    if join != nil, networks == nil {
      throw Failure.other("cannot join the toy's network: NetworkManager is not running; join it by hand and omit --join")
    }
    let temporary = try networks.flatMap { networks in
      try join.map { join throws(Failure) in try TemporaryNetwork(join, networks) }
    }
    var prompt = WiFiPrompt(output: output)
    prompt.scan = { () throws(Failure) in try Self.scan(networks, output) }
    let credentials = try prompt.credentials(network)
    var arguments: [String: Value] = ["ssid": .string(credentials.name)]
    if !credentials.password.isEmpty { arguments["password"] = .string(credentials.password) }
    if let dial { arguments["dial"] = .string(dial) }
    let run = WiFiProvisioning(toy: toy, output: output, timeout: common.timeout, steps: Self.steps(join: join, dial: dial))
    let last = try run.run(toy.parameters("wifi", arguments), joining: temporary)
    if !output.json, !output.quiet, let text = last?.text { output.line(Output.oneLine(text)) }
    for line in Self.advice(credentials.name) { output.note(line) }
  }

  /// The instructions for the user.
  static func steps(join: String?, dial: String?) -> [String] {
    let networkName = join.map { "\"\(Output.oneLine($0))\"" } ?? "\"\(ToyNetwork.defaultName)\" (or AI-THINKER_…, ESP_…)"
    return [
      "1. Press the toy's Wi-Fi button until its light is white.",
      join == nil
        ? "2. Connect this computer, and no other device, to its open network \(networkName)."
        : "2. Wait: this computer joins the toy's open network \(networkName) and returns afterwards. Connect no other device to it.",
      dial == nil ? "3. Wait: the toy connects to this computer, TCP port 8080." : "3. Wait: this computer connects to the toy.",
      "The password is sent unencrypted over that open network: do this where others cannot receive it.",
    ]
  }

  /// The advice to print at the end, in case the toy cannot join the network.
  static func advice(_ name: String) -> [String] {
    [
      "If the light is purple: check the password for \"\(Output.oneLine(name))\" and that it is a 2.4 GHz network, then start again."
    ]
  }

  /// Scans for networks for up to 6 s. Returns nil without NetworkManager or a usable Wi-Fi device.
  private static func scan(_ networks: NetworkManager?, _ output: Output) throws(Failure) -> NearbyNetworks? {
    guard let networks, let before = try? networks.snapshot(), !before.usable.isEmpty, !before.isSwitchedOff else { return nil }
    output.progress("scanning for Wi-Fi networks")
    defer { output.progress(nil) }
    for device in before.usable { networks.scan(device.path) }
    let scans = before.devices.map(\.lastScan)
    let deadline = Clock.monotonic + 6
    while Clock.monotonic < deadline {
      guard !Interrupt.received else { throw .other("interrupted") }
      guard let snapshot = try? networks.snapshot() else { return nil }
      if snapshot.devices.map(\.lastScan) != scans { return NearbyNetworks(Array(snapshot.accessPoints.values)) }
      usleep(300_000)
    }
    return (try? networks.snapshot()).map { NearbyNetworks(Array($0.accessPoints.values)) }
  }
}
