// `vehiclesim toy`: the Trivia toy, which connects to a phone and to a web server. Only options; the toy itself is a Peer.

import ArgumentParser
import Glibc
import Peers
import Protocols

struct ToySimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "toy",
    abstract: "The Trivia toy: a phone tells it the network of the house, a web server its facts.",
    discussion: """
      The toy is a client. In setup mode it connects to the phone (--phone) until there is one, says ok when the phone has \
      said ok, and is told USER:NETWORK:PASSWORD. Then it joins, and whenever it is thrown it speaks a fact, asks the server \
      (--server) for another one, and reports the play. The first line on standard output is the phone's place, or, with \
      --documented, its own.

      Faults (--fault, any number). WHEN is N, the first N connections to the phone, or @S, once, the first connection from S \
      seconds after the start on:

      \(helpTable(ToyFault.table))

      Examples:
        vehiclesim toy --phone tcp:127.0.0.1:8080 -v
        vehiclesim toy --card /tmp/card --press 5 --throw 30 --network HomeNet --network-password "correct horse" -v
        vehiclesim toy --joined --user 18 --throw 10 --server tcp:127.0.0.1:8081 -v
        vehiclesim toy --documented --on tcp:127.0.0.1:0

      With -v it tells what its light shows, what it says, what it was told and what was lost.
      """)

  @Option(
    help: ArgumentHelp("Where the phone listens, as tcp:HOST:PORT (tcp:127.0.0.1:8080 if left out).", valueName: "place"),
    transform: { try Endpoint($0) })
  var phone: Endpoint?

  @Option(
    help: ArgumentHelp("Where the web server listens, as tcp:HOST:PORT (tcp:127.0.0.1:8081 if left out).", valueName: "place"),
    transform: { try Endpoint($0) })
  var server = Endpoint.tcp(host: "127.0.0.1", port: 8081)

  @Flag(help: "As the app's description has it: the toy listens, and the phone connects and speaks first.")
  var documented = false

  @Option(
    help: ArgumentHelp("With --documented: where it listens, as tcp:HOST:PORT (port 0 picks one).", valueName: "place"),
    transform: { try Endpoint($0) })
  var on: Endpoint?

  @Option(help: ArgumentHelp("The user's number that is on its card when it is new (none if left out).", valueName: "number"))
  var user = ""

  @Option(
    help: ArgumentHelp("Keep its card there, for the next start, which is a power cycle (in memory if left out).", valueName: "folder"))
  var card: String?

  @Option(help: ArgumentHelp("Press its button so long after the start (0 if left out); any number.", valueName: "seconds"))
  var press: [Double] = []

  @Flag(help: "Nobody presses its button.")
  var noPress = false

  @Flag(help: "It was set up before: it is in the network when it has started, and nobody presses its button.")
  var joined = false

  @Option(name: .customLong("throw"), help: ArgumentHelp("Throw it so often while it is not being set up.", valueName: "seconds"))
  var throwEvery: Double?

  @Option(help: ArgumentHelp("The network that is there (it joins any if left out).", valueName: "name"))
  var network: String?

  @Option(help: ArgumentHelp("Its password (none if left out).", valueName: "password"))
  var networkPassword: String?

  @Option(help: ArgumentHelp("How long a network takes to let it in; it waits 10.", valueName: "seconds"))
  var joinsAfter = 3.0

  @Option(help: ArgumentHelp("Its battery in %: 15 and less is low.", valueName: "percent"))
  var battery = 100

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try ToyFault($0) })
  var fault: [ToyFault] = []

  @Flag(help: "It takes a tenth of its time, but for the 2 s that it waits for the phone's ok; a network does, too.")
  var instant = false

  @Option(help: ArgumentHelp("What it calls itself in -v.", valueName: "name"))
  var name: String?

  @Option(help: ArgumentHelp("Chooses what lies behind its buffers: the same seed gives the same bytes.", valueName: "n"))
  var seed: UInt64 = 1

  @Flag(name: .shortAndLong, help: "Show connections, every byte and what the toy does on standard error.")
  var verbose = false

  @Flag(name: .shortAndLong, help: "Do not print the place.")
  var quiet = false

  func validate() throws {
    for place in [phone, server, on].compactMap(\.self) {
      guard case .tcp = place else { throw ValidationError("a toy is on TCP alone: write tcp:HOST:PORT") }
    }
    if on != nil, !documented { throw ValidationError("--on needs --documented: the toy as built connects to --phone") }
    if phone != nil, documented { throw ValidationError("--phone and --documented exclude each other: there the phone connects") }
    if noPress || joined, !press.isEmpty { throw ValidationError("--press excludes --no-press and --joined") }
    if networkPassword != nil, network == nil { throw ValidationError("--network-password needs --network") }
    for seconds in press + [joinsAfter] where !(0...86_400).contains(seconds) {
      throw ValidationError("\(seconds) is not possible: choose 0 to 86400 seconds")
    }
    if let throwEvery, !(0.1...86_400).contains(throwEvery) {
      throw ValidationError("--throw \(throwEvery) is not possible: choose 0.1 to 86400 seconds")
    }
    if !(0...100).contains(battery) { throw ValidationError("--battery \(battery) is not possible: choose 0 to 100 %") }
    if card?.isEmpty == true { throw ValidationError("--card needs a folder") }
    if quiet && verbose { throw ValidationError("--quiet and --verbose exclude each other") }
  }

  func run() throws {
    let loop = try EventLoop()
    let log = ActivityLog(quiet: quiet, verbose: verbose, name: name)
    let (place, places) = try places()
    let folder = try card.map { try CardFolder($0) }
    let client = try PeerClient(
      TriviaToy(settings(places)), name: "toy", reaches: [places.phone, places.server], card: folder, loop: loop, log: log)
    log.announce(place)
    try withExtendedLifetime(client) { try loop.run() }
  }

  /// What is announced; and where phone and server are, and the toy itself where it listens.
  private func places() throws -> (String, (phone: String, server: String, own: String?)) {
    let server = Self.url(server)
    guard documented else {
      let phone = Self.url(phone ?? .tcp(host: "127.0.0.1", port: 8080))
      return (phone, (phone, server, nil))
    }
    guard case .tcp(let host, var port) = on ?? .tcp(host: "127.0.0.1", port: 8080) else { return ("", ("", server, nil)) }
    // Whether it can be had, and which one it is, a person wants to know now; it listens when its button is pressed.
    let trial = try TCPPort.listen(host: host, port: port, queue: 1)
    port = TCPPort.number(of: trial)
    close(trial)
    let url = Endpoint.url(host: host, port: port)
    return (url, (url, server, String(url.dropFirst("tcp:".count))))
  }

  private static func url(_ place: Endpoint) -> String {
    if case .tcp(let host, let port) = place { Endpoint.url(host: host, port: port) } else { "" }
  }

  private func settings(_ places: (phone: String, server: String, own: String?)) -> SimulatedToySettings {
    var settings = SimulatedToySettings(phone: places.phone, server: places.server)
    settings.listensAt = places.own
    settings.presses = noPress || joined ? [] : (press.isEmpty ? [0] : press).map { Nanoseconds($0 * 1e9) }
    settings.throwEvery = throwEvery.map { Nanoseconds($0 * 1e9) }
    settings.user = user
    settings.network = network.map { SimulatedWiFiNetwork($0, password: networkPassword ?? "") }
    settings.joinsAfter = Nanoseconds(joinsAfter * (instant ? 1e8 : 1e9))
    settings.isJoined = joined
    settings.battery = battery
    settings.faults = fault
    settings.timing = instant ? .instant : .real
    settings.seed = seed
    return settings
  }
}
