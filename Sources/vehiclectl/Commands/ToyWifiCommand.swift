// toy wifi: walks a person through telling the toy its Wi-Fi network. Everything is asked for and checked before the button is
// pressed: the toy waits less than a minute.

import ArgumentParser
import Glibc
import Protocols

struct ToyWifiCommand: ToyVerb {
  static let configuration = CommandConfiguration(
    commandName: "wifi", abstract: "Tell the toy its Wi-Fi network.", usage: usage,
    discussion: """
      Asks for what is missing: the network (those nearby are listed where NetworkManager is there) and its password. Without a \
      terminal the password is the first line of stdin, an empty one for an open network. The daemon waits for the toy on TCP port \
      8080, which a firewall must let through; Ctrl-C ends it. --join has this computer join the toy's network itself, through \
      NetworkManager, and go back afterwards.
      """)

  private static let usage = "vehiclectl toy wifi [<options>] [<network>]"

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Option(
    defaultAsFlag: ToyNetwork.usual, parsing: .next,
    help: ArgumentHelp("Join the toy's own network meanwhile; named otherwise: --join=ESP_A1B2C3.", valueName: "network"))
  var join: String?
  @Option(help: ArgumentHelp("Connect to a toy that listens, as the documentation has it.", valueName: "host[:port]"))
  var dial: String?
  @Argument(help: "The network, at 2.4 GHz.")
  var network: String?
  @Argument(parsing: .allUnrecognized, help: .hidden)
  var extra: [String] = []

  func perform(_ output: Output) throws {
    try Self.rejectExtra(extra, Self.usage)
    if let join, !ToyWiFi.nameLength.contains(join.utf8.count) {
      throw Failure.usage("--join: a network's name has 1 to 32 bytes; this one has \(join.utf8.count)")
    }
    Interrupt.catchSignals()
    let toy = try open(output)
    let isAsked = network == nil && Prompt.isInteractive
    let networks = join != nil || isAsked ? NetworkManager() : nil
    if join != nil, networks == nil {
      throw Failure.other("there is no NetworkManager here to join with; join the toy's network by hand, and leave out --join")
    }
    let borrowed = try networks.flatMap { networks in
      try join.map { join throws(Failure) in try TemporaryNetwork(join, networks) }
    }
    var questions = WiFiQuestions(output: output)
    questions.listen = { () throws(Failure) in try Self.listen(networks, output) }
    let answers = try questions.answers(network)
    var arguments: [String: Value] = ["ssid": .string(answers.name)]
    if !answers.password.isEmpty { arguments["password"] = .string(answers.password) }
    if let dial { arguments["dial"] = .string(dial) }
    let run = WiFiProvisioning(toy: toy, output: output, limit: common.timeout, steps: Self.steps(join: join, dial: dial))
    let last = try run.run(toy.parameters("wifi", arguments), joining: borrowed)
    if !output.json, !output.quiet, let text = last?.text { output.line(Output.oneLine(text)) }
    for line in Self.end(answers.name) { output.note(line) }
  }

  /// What is to be done now.
  static func steps(join: String?, dial: String?) -> [String] {
    let toys = join.map { "\"\(Output.oneLine($0))\"" } ?? "\"\(ToyNetwork.usual)\" (or AI-THINKER_…, ESP_…)"
    return [
      "1. Press the toy's Wi-Fi button until its light is white.",
      join == nil
        ? "2. Join its open network \(toys) with this computer, and with nothing else."
        : "2. This computer joins the toy's open network \(toys) by itself, and goes back afterwards; nothing else may join it.",
      dial == nil ? "3. Wait: the toy connects to this computer, TCP port 8080." : "3. Wait: this computer connects to the toy.",
      "The password crosses that open network readable: do this where nobody listens.",
    ]
  }

  /// What to make of it.
  static func end(_ name: String) -> [String] {
    [
      "If its light is purple: check the password of \"\(Output.oneLine(name))\", and that it is at 2.4 GHz; then press the button again."
    ]
  }

  /// The networks nearby, after a search of a few seconds; nil where nobody can listen.
  private static func listen(_ networks: NetworkManager?, _ output: Output) throws(Failure) -> NearbyNetworks? {
    guard let networks, let before = try? networks.snapshot(), !before.usable.isEmpty, !before.isSwitchedOff else { return nil }
    output.progress("listening for networks")
    defer { output.progress(nil) }
    for device in before.usable { networks.scan(device.path) }
    let scans = before.devices.map(\.lastScan)
    let limit = Clock.monotonic + 6
    while Clock.monotonic < limit {
      guard !Interrupt.received else { throw .other("interrupted") }
      guard let found = try? networks.snapshot() else { return nil }
      if found.devices.map(\.lastScan) != scans { return NearbyNetworks(Array(found.accessPoints.values)) }
      usleep(300_000)
    }
    return (try? networks.snapshot()).map { NearbyNetworks(Array($0.accessPoints.values)) }
  }
}
