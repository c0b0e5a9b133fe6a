// `vehiclesim rc-car`: options of the simulated AutoTT RC car.

import ArgumentParser
import Peers
import Protocols
import ServiceRuntime

struct CarSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rc-car",
    abstract: "Simulate the AutoTT RC car and its video server.",
    usage: "vehiclesim rc-car [<options>] --on <endpoint>",
    discussion: """
      Like the real one, the car serves a single client, keeps driving if that client disappears, and restarts after Disconnect. \
      Its video server listens on the next port: / is a web page, and /video_feed is the video.

      Faults (--fault, repeatable). WHEN is N for every Nth read of the car (default 100), or @S for once, S seconds \
      after the client connected:

      \(helpTable(CarFault.table))

      Flaws of the real car that can be removed (--without, repeatable), and what the car does without them:

      \(helpTable(CarFlaw.table))

      Examples:
        vehiclesim rc-car --on tcp:127.0.0.1:12345 -v
        vehiclesim rc-car --on tcp:127.0.0.1:0 --restart 0.5 --fault lag:50:800 \\
          --without ignores-close

      -v also prints the motors (motors LEFT RIGHT, in % of full speed), the lights, the camera, every frame that the \
      car executes, and the bytes that it loses.
      """)

  @Option(
    help: ArgumentHelp("Set the endpoint, tcp:HOST:PORT (port 0: any free pair of ports).", valueName: "endpoint"),
    transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: "Simulate AutoTT's program (as-built), or the protocol of the app's documentation (documented).")
  var dialect = AutoTTCar.Dialect.asBuilt

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try CarFault($0) })
  var fault: [CarFault] = []

  @Option(help: ArgumentHelp("Remove a flaw of the original; see above.", valueName: "flaw"))
  var without: [CarFlaw] = []

  @Option(help: ArgumentHelp("Set for how many seconds the car accepts no connection after Disconnect.", valueName: "seconds"))
  var restart = 3.0

  @Flag(help: "Set up, report the status and start the camera without delay.")
  var instant = false

  @Option(help: ArgumentHelp("Set the name shown in -v output.", valueName: "name"))
  var name: String?

  @Option(help: ArgumentHelp("Set the seed of the positions where messages are split.", valueName: "n"))
  var seed: UInt64 = 1

  @OptionGroup var activity: ActivityOptions

  func validate() throws {
    guard case .tcp = on else { throw ValidationError("the car needs a TCP endpoint: write --on tcp:HOST:PORT") }
    if !(0...3600).contains(restart) { throw ValidationError("--restart \(restart) is out of range: choose 0 to 3600 s") }
  }

  func run() throws {
    guard case .tcp(let host, let port) = on else { return }
    let loop = try EventLoop()
    let log = ActivityLog(activity, name: name)
    var number: UInt64 = 0
    let server = try CarServer(host: host, port: port, restartDelay: Nanoseconds(restart * 1e9), loop: loop, log: log) {
      defer { number += 1 }
      return AutoTTCar(dialect, without: Set(without), faults: fault, isInstant: instant, seed: seed &+ number)
    }
    log.announce(server.url)
    try withExtendedLifetime(server) { try loop.run() }
  }
}

extension AutoTTCar.Dialect: ExpressibleByArgument {}
extension CarFlaw: ExpressibleByArgument {}
