// `vehiclesim gpsd`: options of the simulated gpsd.

import ArgumentParser
import Peers
import Protocols
import ServiceRuntime

struct GPSDSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gpsd",
    abstract: "Simulate gpsd with a GPS receiver that moves in a loop.",
    usage: "vehiclesim gpsd [<options>] --on <endpoint>",
    discussion: """
      The receiver drives around a square of 1 km at a constant speed.

      Faults (--fault, repeatable). WHEN is N for every Nth fix of a connection (default 10), or @S for once, S seconds after the \
      client connected:

      \(helpTable(GPSDFault.table))

      Example:
        vehiclesim gpsd --on tcp:127.0.0.1:2947 --speed 30 --fault no-fix:@60:20000
      """)

  @Option(
    help: ArgumentHelp("Set the endpoint, tcp:HOST:PORT (port 0: any free port).", valueName: "endpoint"), transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: ArgumentHelp("Set the latitude of the south-western corner, -89 to 89.", valueName: "degrees"))
  var latitude = 63.43

  @Option(help: ArgumentHelp("Set the longitude of the south-western corner, -180 to 180.", valueName: "degrees"))
  var longitude = 10.39

  @Option(help: ArgumentHelp("Set the speed in km/h, 0 to 1000.", valueName: "speed"))
  var speed = 50.0

  @Option(help: ArgumentHelp("Set the number of fixes per second, 0.1 to 20.", valueName: "rate"))
  var rate = 1.0

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try GPSDFault($0) })
  var fault: [GPSDFault] = []

  @Option(help: ArgumentHelp("Set the name shown in -v output.", valueName: "name"))
  var name: String?

  @OptionGroup var activity: ActivityOptions

  func validate() throws {
    guard case .tcp = on else { throw ValidationError("gpsd needs a TCP endpoint: write --on tcp:HOST:PORT") }
    for (option, value, range) in [
      ("latitude", latitude, -89...89), ("longitude", longitude, -180...180), ("speed", speed, 0...1000), ("rate", rate, 0.1...20),
    ] as [(String, Double, ClosedRange<Double>)] where !range.contains(value) {
      let limits = "\(Value.text(range.lowerBound)) to \(Value.text(range.upperBound))"
      throw ValidationError("--\(option): \(Value.text(value)) is out of range: write a number from \(limits)")
    }
  }

  func run() throws {
    guard case .tcp(let host, let port) = on else { return }
    let loop = try EventLoop()
    let start = SystemClock.monotonic
    let log = ActivityLog(activity, name: name)
    let drive = GPSDLoop(latitude: latitude, longitude: longitude, speed: speed)
    let url = try PeerServer.listen(host: host, port: port, loop: loop, log: log) {
      GPSD(drive, rate: rate, origin: start, faults: fault)
    }
    log.announce(url)
    try loop.run()
  }
}
