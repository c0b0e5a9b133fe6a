// `vehiclesim car`: the RC car AutoTT on TCP, with its video beside it. Only options; the car itself is a Peer.

import ArgumentParser
import Peers
import Protocols

struct CarSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "car",
    abstract: "The RC car AutoTT: it is driven by tilt, and believes that its driver is always there.",
    discussion: """
      The car serves one client in the life of its program, drives on when that client is gone, and after Disconnect \
      starts again. Its video server listens one port above: / is a page, /video_feed the pictures.

      Faults (--fault, any number). WHEN is N, every Nth read of the car (100 if left out), or @S, once, S seconds \
      after the client came:

      \(helpTable(CarFault.table))

      What is wrong with every car as built, and can be taken away (--without, any number):

      \(helpTable(CarFlaw.table))

      Examples:
        vehiclesim car --on tcp:127.0.0.1:12345 -v
        vehiclesim car --on tcp:127.0.0.1:0 --restart 0.5 --fault lag:50:800 --without deaf

      With -v it also says what the motors do (motors LEFT RIGHT, in % of full speed), the lights, the camera, every \
      frame that it acts on, and what it loses.
      """)

  @Option(
    help: ArgumentHelp("Where clients find it: tcp:HOST:PORT (port 0 picks one whose next is free, too).", valueName: "place"),
    transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: "The program as it was built, or a device as the app's description has it.")
  var dialect = AutoTTCar.Dialect.asBuilt

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try CarFault($0) })
  var fault: [CarFault] = []

  @Option(help: ArgumentHelp("What of the original's faults is taken away; see above.", valueName: "flaw"))
  var without: [CarFlaw] = []

  @Option(help: ArgumentHelp("Seconds after Disconnect in which nobody listens.", valueName: "seconds"))
  var restart = 3.0

  @Flag(help: "Setting up, status and camera take no time.")
  var instant = false

  @Option(help: ArgumentHelp("What it calls itself in -v.", valueName: "name"))
  var name: String?

  @Option(help: ArgumentHelp("Chooses where messages are cut: the same seed gives the same cuts.", valueName: "n"))
  var seed: UInt64 = 1

  @Flag(name: .shortAndLong, help: "Show clients, every byte and what the car does on standard error.")
  var verbose = false

  @Flag(name: .shortAndLong, help: "Do not print the link.")
  var quiet = false

  func validate() throws {
    guard case .tcp = on else { throw ValidationError("this car is on TCP alone: write --on tcp:HOST:PORT") }
    if !(0...3600).contains(restart) { throw ValidationError("--restart \(restart) is not possible: choose 0 to 3600 seconds") }
    if quiet && verbose { throw ValidationError("--quiet and --verbose exclude each other") }
  }

  func run() throws {
    guard case .tcp(let host, let port) = on else { return }
    let loop = try EventLoop()
    let log = ActivityLog(quiet: quiet, verbose: verbose, name: name)
    var number: UInt64 = 0
    let server = try CarServer(host: host, port: port, restart: Nanoseconds(restart * 1e9), loop: loop, log: log) {
      defer { number += 1 }
      return AutoTTCar(dialect, without: Set(without), faults: fault, isInstant: instant, seed: seed &+ number)
    }
    log.announce(server.url)
    try withExtendedLifetime(server) { try loop.run() }
  }
}

extension AutoTTCar.Dialect: ExpressibleByArgument {}
extension CarFlaw: ExpressibleByArgument {}
