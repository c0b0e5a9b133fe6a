// `vehiclesim trivia`: options of the web server of the Trivio trivia toy, and the files that they name.

import ArgumentParser
import Glibc
import Peers
import Protocols
import ServiceRuntime

struct TriviaSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trivia",
    abstract: "Run the web server of the Trivio trivia toy: accounts, facts, votes.",
    usage: "vehiclesim trivia [<options>] --on <endpoint>",
    discussion: """
      The first line on standard output is the URL to configure as `server = "…"` for a device of kind toy. Apps register, log in, read \
      the history of their toy and vote; toys fetch facts and report the facts that they play. Passwords are stored salted and hashed. \
      There is no TLS: use the server only on a trusted network.

      A real toy connects only to triviotoy.azurewebsites.net, port 80. To redirect it to this server:
        1. Have the network's DNS server resolve that name to this computer. With dnsmasq, which many routers use: \
      address=/triviotoy.azurewebsites.net/192.168.1.10
        2. Listen on port 80, which requires root or CAP_NET_BIND_SERVICE: \
      vehiclesim trivia --on tcp:0.0.0.0:80 --database trivia.db

      Faults (--fault, repeatable). WHEN is N for every Nth reply (default 1), or @S for every reply from S seconds after \
      the start of vehiclesim:

      \(helpTable(TriviaFault.table))

      Example:
        vehiclesim trivia --on tcp:127.0.0.1:8080 --fault lost:3
      """)

  @Option(
    help: ArgumentHelp("Set the endpoint, tcp:HOST:PORT (port 0: any free port).", valueName: "endpoint"), transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: ArgumentHelp("Store accounts, facts and votes in this file (default: in memory).", valueName: "file"))
  var database: String?

  @Option(
    help: ArgumentHelp(
      "Serve the facts in this file instead of the built-in ones: one per line, with IDs from 500 upwards. A line may start with its own "
        + "ID and a tab.",
      valueName: "file"))
  var facts: String?

  @Flag(help: "Require apps to send the token that they get on registration or login. Toys do not need a token.")
  var tokens = false

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try TriviaFault($0) })
  var fault: [TriviaFault] = []

  @Option(help: ArgumentHelp("Set the name shown in -v output.", valueName: "name"))
  var name: String?

  @OptionGroup var activity: ActivityOptions

  func validate() throws {
    guard case .tcp = on else { throw ValidationError("the trivia server needs a TCP endpoint: use --on tcp:HOST:PORT") }
    if database?.isEmpty == true { throw ValidationError("--database needs a path") }
  }

  func run() throws {
    guard case .tcp(let host, let port) = on else { return }
    let loop = try EventLoop()
    let start = SystemClock.monotonic
    let service = TriviaService(try store(), requiresTokens: tokens) { count in
      var system = SystemRandomNumberGenerator()
      return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &system) }
    }
    let log = ActivityLog(activity, name: name)
    var number: UInt64 = 0
    let url = try PeerServer.listen(host: host, port: port, loop: loop, log: log) {
      defer { number += 1 }
      return TriviaServer(service, client: number, origin: start, faults: fault)
    }
    log.announce(WebAddress.text(of: url))
    try loop.run()
  }

  /// Opens the store and adds the facts. An empty store first gets the built-in facts: all of them, or with `--facts` only those that toys
  /// ship with. The facts of `--facts` then replace those with the same ids.
  private func store() throws -> TriviaDatabase {
    let customFacts = try facts.map(Self.facts)
    do throws(ValueError) {
      let store = try TriviaDatabase(database)
      if try store.fact(after: 0) == nil {
        try store.load(TriviaFact.builtIn.filter { customFacts == nil || $0.id <= TriviaUser.lastShippedFact }, replacing: false)
      }
      if let customFacts { try store.load(customFacts, replacing: true) }
      return store
    } catch {
      throw SimulatorError(error.description)
    }
  }

  private static func facts(at path: String) throws -> [TriviaFact] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw SimulatorError("cannot read \(path)", errno: errno) }
    defer { close(file) }
    var (all, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 65_536))
    while true {
      let count = read(file, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SimulatorError("cannot read \(path)", errno: errno) }
      if count == 0 { break }
      all += buffer[..<count]
      guard all.count <= maxFileSize else { throw SimulatorError("cannot use \(path): file larger than \(maxFileSize >> 20) MiB") }
    }
    do throws(ValueError) {
      return try TriviaFact.list(all)
    } catch {
      throw SimulatorError("cannot use \(path): \(error.description)")
    }
  }

  private static let maxFileSize = 16 << 20
}
