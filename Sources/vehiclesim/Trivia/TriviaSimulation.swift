// `vehiclesim trivia`: a stand-in for the web server of the trivia toy, on TCP. Options, and what they open; the server itself is
// a Peer.

import ArgumentParser
import Glibc
import Peers
import Protocols

struct TriviaSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trivia",
    abstract: "The web server of the trivia toy: accounts, facts, votes.",
    discussion: """
      It prints its URL, for server of a toy device. Apps register, log in, read what their toy has played and vote; toys fetch facts \
      and report what they played. Passwords are kept salted and hashed. There is no TLS: for a network that you trust.

      A toy on the shelf asks triviotoy.azurewebsites.net, port 80, and nobody else. To have it ask you:
        1. Let the network's name server answer that name with this computer's address. With dnsmasq, as in many routers: \
      address=/triviotoy.azurewebsites.net/192.168.1.10
        2. Run it on port 80, which takes root or CAP_NET_BIND_SERVICE: vehiclesim trivia --on tcp:0.0.0.0:80 --database trivia.db

      Faults (--fault, any number). WHEN is N, every Nth answer (each if left out), or @S, every answer from S seconds after \
      the start of vehiclesim on:

      \(helpTable(TriviaFault.table))

      Example:
        vehiclesim trivia --on tcp:127.0.0.1:8080 --fault lost:3
      """)

  @Option(
    help: ArgumentHelp("Where clients find it: tcp:HOST:PORT (port 0 picks one).", valueName: "place"), transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: ArgumentHelp("Keep accounts, facts and votes in this file; without it they end with the program.", valueName: "file"))
  var database: String?

  @Option(
    help: ArgumentHelp(
      "What toys fetch, in place of the facts that are built in: one a line, with the ids from 500 on. A line may begin with an id "
        + "of its own and a tab.",
      valueName: "file"))
  var facts: String?

  @Flag(help: "Ask apps for a token, which they get when they register or log in: nobody reads or votes for others. Toys have none.")
  var tokens = false

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try TriviaFault($0) })
  var fault: [TriviaFault] = []

  @Option(help: ArgumentHelp("What it calls itself in -v.", valueName: "name"))
  var name: String?

  @Flag(name: .shortAndLong, help: "Show clients and every byte that is no secret on standard error.")
  var verbose = false

  @Flag(name: .shortAndLong, help: "Do not print the URL.")
  var quiet = false

  func validate() throws {
    guard case .tcp = on else { throw ValidationError("a trivia server is on TCP alone: write --on tcp:HOST:PORT") }
    if database?.isEmpty == true { throw ValidationError("--database needs a path") }
    if quiet && verbose { throw ValidationError("--quiet and --verbose exclude each other") }
  }

  func run() throws {
    guard case .tcp(let host, let port) = on else { return }
    let loop = try EventLoop()
    let start = SimulatorClock.now
    let service = TriviaService(try store(), requiresTokens: tokens) { count in
      var system = SystemRandomNumberGenerator()
      return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &system) }
    }
    let log = ActivityLog(quiet: quiet, verbose: verbose, name: name)
    var number: UInt64 = 0
    let listener = try PeerServer(host: host, port: port, loop: loop, log: log) {
      defer { number += 1 }
      return TriviaServer(service, client: number, origin: start, faults: fault)
    }
    log.announce("http://\(listener.url.dropFirst("tcp:".count))")
    try loop.run()
  }

  /// The store with its facts. A database keeps those it has; a file of facts goes over them.
  private func store() throws -> TriviaDatabase {
    let given = try facts.map(Self.facts)
    do throws(ValueError) {
      let store = try TriviaDatabase(database)
      if try store.fact(after: 0) == nil {
        try store.load(TriviaFact.known.filter { given == nil || $0.id <= TriviaUser.shipped }, replacing: false)
      }
      if let given { try store.load(given, replacing: true) }
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
      guard all.count <= maxFileSize else { throw SimulatorError("cannot use \(path): it is longer than \(maxFileSize >> 20) MiB") }
    }
    do throws(ValueError) {
      return try TriviaFact.list(all)
    } catch {
      throw SimulatorError("cannot use \(path): \(error.description)")
    }
  }

  private static let maxFileSize = 16 << 20
}
