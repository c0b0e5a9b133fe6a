// `vehiclesim weather`: options of the simulated Open-Meteo service.

import ArgumentParser
import Peers
import Protocols
import ServiceRuntime

struct WeatherSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "weather",
    abstract: "Simulate the Open-Meteo weather service: forecasts and geocoding.",
    usage: "vehiclesim weather [<options>] --on <endpoint>",
    discussion: """
      The first line on standard output is the URL for the keys url and geocoding-url of a weather device. Geocoding finds \
      Berlin, Trondheim, Zürich, Quito and San Francisco. The temperature depends on the latitude only.

      Faults (--fault, repeatable). WHEN is N for every Nth reply (default 1), or @S for every reply from S seconds after \
      the start of vehiclesim:

      \(helpTable(ForecastFault.table))

      Example:
        vehiclesim weather --on tcp:127.0.0.1:8080 --fault limit:@60
      """)

  @Option(
    help: ArgumentHelp("Set the endpoint, tcp:HOST:PORT (port 0: any free port).", valueName: "endpoint"), transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try ForecastFault($0) })
  var fault: [ForecastFault] = []

  @Option(help: ArgumentHelp("Set the name shown in -v output.", valueName: "name"))
  var name: String?

  @OptionGroup var activity: ActivityOptions

  func validate() throws {
    guard case .tcp = on else { throw ValidationError("the weather service needs a TCP endpoint: write --on tcp:HOST:PORT") }
  }

  func run() throws {
    guard case .tcp(let host, let port) = on else { return }
    let loop = try EventLoop()
    let start = SystemClock.monotonic
    let log = ActivityLog(activity, name: name)
    var number: UInt64 = 0
    let url = try PeerServer.listen(host: host, port: port, loop: loop, log: log) {
      defer { number += 1 }
      return OpenMeteo(client: number, origin: start, faults: fault)
    }
    log.announce(WebAddress.text(of: url))
    try loop.run()
  }
}
