// `vehiclesim weather`: a stand-in for Open-Meteo on TCP. Only options; the service itself is a Peer.

import ArgumentParser
import Peers
import Protocols

struct WeatherSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "weather",
    abstract: "A weather service like Open-Meteo, with forecasts and places.",
    discussion: """
      It prints its URL, for url and geocoding-url of a weather device. It knows Berlin, Trondheim, Zürich, Quito and San \
      Francisco; the weather is always fine, and the colder the further from the equator.

      Faults (--fault, any number). WHEN is N, every Nth answer (each if left out), or @S, every answer from S seconds after \
      the start of vehiclesim on:

      \(helpTable(ForecastFault.table))

      Example:
        vehiclesim weather --on tcp:127.0.0.1:8080 --fault limit:@60
      """)

  @Option(
    help: ArgumentHelp("Where clients find it: tcp:HOST:PORT (port 0 picks one).", valueName: "place"), transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try ForecastFault($0) })
  var fault: [ForecastFault] = []

  @Option(help: ArgumentHelp("What it calls itself in -v.", valueName: "name"))
  var name: String?

  @Flag(name: .shortAndLong, help: "Show clients and every byte on standard error.")
  var verbose = false

  @Flag(name: .shortAndLong, help: "Do not print the URL.")
  var quiet = false

  func validate() throws {
    guard case .tcp = on else { throw ValidationError("a weather service is on TCP alone: write --on tcp:HOST:PORT") }
    if quiet && verbose { throw ValidationError("--quiet and --verbose exclude each other") }
  }

  func run() throws {
    guard case .tcp(let host, let port) = on else { return }
    let loop = try EventLoop()
    let start = SimulatorClock.now
    let log = ActivityLog(quiet: quiet, verbose: verbose, name: name)
    var number: UInt64 = 0
    let listener = try PeerServer(host: host, port: port, loop: loop, log: log) {
      defer { number += 1 }
      return OpenMeteo(client: number, origin: start, faults: fault)
    }
    log.announce("http://\(listener.url.dropFirst("tcp:".count))")
    try loop.run()
  }
}
