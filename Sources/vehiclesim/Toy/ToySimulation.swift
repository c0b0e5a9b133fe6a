// `vehiclesim toy`: options of the simulated Trivio trivia toy.

import ArgumentParser
import Glibc
import Peers
import Protocols
import ServiceRuntime

struct ToySimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "toy",
    abstract: "Simulate the Trivio trivia toy, which gets Wi-Fi credentials from a phone and facts from a web server.",
    discussion: """
      The toy is a client. In setup mode, it tries to connect to the phone (--phone) until it succeeds, replies ok to the phone's ok, and \
      receives USER:NETWORK:PASSWORD. Then it joins the network. Each time it is thrown, it speaks a fact, requests another one from the \
      server (--server), and reports that it has played the fact. The first line on standard output is the endpoint of the phone, or, \
      with --documented, of the toy.

      Faults (--fault, repeatable). WHEN is N for the first N connections to the phone, or @S for once, on the first connection from \
      S seconds after the start:

      \(helpTable(ToyFault.table))

      Examples:
        vehiclesim toy --phone tcp:127.0.0.1:8080 -v
        vehiclesim toy --card /tmp/card --press 5 --throw 30 --network HomeNet \\
          --network-password "correct horse" -v
        vehiclesim toy --joined --user 18 --throw 10 --server tcp:127.0.0.1:8081 -v
        vehiclesim toy --documented --on tcp:127.0.0.1:0

      -v also prints the LED, the speech, the credentials that the toy received, and lost bytes.
      """)

  @Option(
    help: ArgumentHelp("Set the endpoint of the phone, tcp:HOST:PORT (default tcp:127.0.0.1:8080).", valueName: "endpoint"),
    transform: { try Endpoint($0) })
  var phone: Endpoint?

  @Option(
    help: ArgumentHelp("Set the endpoint of the web server, tcp:HOST:PORT (default tcp:127.0.0.1:8081).", valueName: "endpoint"),
    transform: { try Endpoint($0) })
  var server = Endpoint.tcp(host: "127.0.0.1", port: 8081)

  @Flag(help: "Behave as the app's documentation describes: the toy listens, and the phone connects and sends first.")
  var documented = false

  @Option(
    help: ArgumentHelp("With --documented: set the endpoint, tcp:HOST:PORT (port 0: any free port).", valueName: "endpoint"),
    transform: { try Endpoint($0) })
  var on: Endpoint?

  @Option(help: ArgumentHelp("Set the user number on a new card (default: none).", valueName: "number"))
  var user = ""

  @Option(
    help: ArgumentHelp(
      "Store the files of the SD card in this folder; a restart is a power cycle (default: in memory).", valueName: "folder"))
  var card: String?

  @Option(help: ArgumentHelp("Press the button this many seconds after the start (default 0). Repeatable.", valueName: "seconds"))
  var press: [Double] = []

  @Flag(help: "Never press the button.")
  var noPress = false

  @Flag(help: "Start as a toy that has been set up and has joined its network; never press the button.")
  var joined = false

  @Option(name: .customLong("throw"), help: ArgumentHelp("Throw the toy at this interval, except in setup mode.", valueName: "seconds"))
  var throwEvery: Double?

  @Option(help: ArgumentHelp("Set the only Wi-Fi network in range (default: the toy joins any).", valueName: "name"))
  var network: String?

  @Option(help: ArgumentHelp("Set the password of that network (default: none).", valueName: "password"))
  var networkPassword: String?

  @Option(help: ArgumentHelp("Set how many seconds the toy needs to join a network; it gives up after 10 s.", valueName: "seconds"))
  var joinsAfter = 3.0

  @Option(help: ArgumentHelp("Set the battery level; 15 % and less is low.", valueName: "percent"))
  var battery = 100

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try ToyFault($0) })
  var fault: [ToyFault] = []

  @Flag(help: "Divide the times of the toy and the network by 10, except the 2 s that the toy waits for the phone's ok.")
  var instant = false

  @Option(help: ArgumentHelp("Set the name shown in -v output.", valueName: "name"))
  var name: String?

  @Option(help: ArgumentHelp("Set the seed of the random bytes that follow the toy's buffers.", valueName: "n"))
  var seed: UInt64 = 1

  @OptionGroup var activity: ActivityOptions

  func validate() throws {
    for endpoint in [phone, server, on].compactMap(\.self) {
      guard case .tcp = endpoint else { throw ValidationError("the toy needs TCP endpoints: write tcp:HOST:PORT") }
    }
    if on != nil, !documented { throw ValidationError("--on needs --documented: the toy as built connects to --phone") }
    if phone != nil, documented {
      throw ValidationError("--phone and --documented are mutually exclusive: a documented toy waits for the phone")
    }
    if noPress || joined, !press.isEmpty { throw ValidationError("--press cannot be combined with --no-press or --joined") }
    if networkPassword != nil, network == nil { throw ValidationError("--network-password needs --network") }
    for seconds in press + [joinsAfter] where !(0...86_400).contains(seconds) {
      throw ValidationError("\(seconds) s is out of range: choose 0 to 86400 s")
    }
    if let throwEvery, !(0.1...86_400).contains(throwEvery) {
      throw ValidationError("--throw \(throwEvery) is out of range: choose 0.1 to 86400 s")
    }
    if !(0...100).contains(battery) { throw ValidationError("--battery \(battery) is out of range: choose 0 to 100 %") }
    if card?.isEmpty == true { throw ValidationError("--card needs a folder") }
  }

  func run() throws {
    let loop = try EventLoop()
    let log = ActivityLog(activity, name: name)
    let (endpoint, endpoints) = try endpoints()
    let folder = try card.map { try SDCardFolder($0) }
    let runner = try ToyRunner(
      TriviaToy(settings(endpoints)), connectsTo: [endpoints.phone, endpoints.server], sdCard: folder, loop: loop, log: log)
    log.announce(endpoint)
    try withExtendedLifetime(runner) { try loop.run() }
  }

  /// The endpoint to announce, and the endpoints of the phone, the server and (with `--documented`) the toy.
  private func endpoints() throws -> (String, (phone: String, server: String, own: String?)) {
    let server = Self.url(server)
    guard documented else {
      let phone = Self.url(phone ?? .tcp(host: "127.0.0.1", port: 8080))
      return (phone, (phone, server, nil))
    }
    guard case .tcp(let host, var port) = on ?? .tcp(host: "127.0.0.1", port: 8080) else { return ("", ("", server, nil)) }
    // The toy listens only after its button is pressed. Listen here first, to check the port, and to learn its number.
    let probe = try TCPPort.listen(host: host, port: port, backlog: 1)
    port = TCPPort.port(of: probe)
    close(probe)
    let url = Endpoint.url(host: host, port: port)
    return (url, (url, server, String(url.dropFirst("tcp:".count))))
  }

  private static func url(_ endpoint: Endpoint) -> String {
    if case .tcp(let host, let port) = endpoint { Endpoint.url(host: host, port: port) } else { "" }
  }

  private func settings(_ endpoints: (phone: String, server: String, own: String?)) -> SimulatedToySettings {
    var settings = SimulatedToySettings(phone: endpoints.phone, server: endpoints.server)
    settings.listensAt = endpoints.own
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
