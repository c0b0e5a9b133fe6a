// `vehiclesim can`: options of the simulated CAN adapter on a bus with cyclic messages.

import ArgumentParser
import Peers
import Protocols
import ServiceRuntime

struct BusSimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "can",
    abstract: "Simulate a CAN adapter on a bus with cyclic messages.",
    usage: "vehiclesim can [<options>] --on <endpoint>",
    discussion: """
      The adapter speaks slcan. Without --log and --car, the messages are those of a car that accelerates and brakes; vehiclesim dbc prints \
      their DBC file. The messages begin when a client opens the channel.

      Vehicles (--car), whose signals vehicled knows, and which are driven and charged in turns:

      \(helpTable(BusCar.allCases.map { ($0.rawValue, $0.title) }))

      Faults (--fault, repeatable):

      \(helpTable(BusListener.Fault.allCases.map { ($0.rawValue, $0.help) }))

      Examples:
        vehiclesim can --on slcan:tcp:127.0.0.1:3333
        vehiclesim can --on slcan:tcp:127.0.0.1:3333 --car tesla-model-3
        vehiclesim can --on slcan:pty --log drive.log --once
      """)

  @Option(
    help: ArgumentHelp("Set the endpoint of the adapter: slcan:pty or slcan:tcp:HOST:PORT (port 0: any free port).", valueName: "endpoint"),
    transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(
    help: ArgumentHelp("With slcan:pty: create a symbolic link to the terminal at this path, and remove it on exit.", valueName: "path"))
  var symlink: String?

  @Option(help: ArgumentHelp("Send the messages of a vehicle; see above.", valueName: "name"))
  var car: BusCar?

  @Option(
    help: ArgumentHelp(
      "Send the received frames of this log of can-utils (candump -L), at its pace, except those of CAN FD.", valueName: "file"))
  var log: String?

  @Flag(help: "Send the frames once; otherwise they are repeated.")
  var once = false

  @Option(help: ArgumentHelp("Set the bit rate of the bus in bit/s. A client with another one receives nothing.", valueName: "n"))
  var bitRate = 500_000

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "name"))
  var fault: [BusListener.Fault] = []

  @Option(help: ArgumentHelp("Set the name of the adapter in -v output.", valueName: "name"))
  var name: String?

  @OptionGroup var activity: ActivityOptions

  private static let maxLogSize = 64 << 20

  func validate() throws {
    guard case .slcan(let endpoint) = on else { throw ValidationError("a CAN adapter needs --on slcan:pty or --on slcan:tcp:HOST:PORT") }
    if symlink != nil, endpoint != .pty { throw ValidationError("--symlink needs --on slcan:pty") }
    if symlink?.isEmpty == true { throw ValidationError("--symlink needs a path") }
    if car != nil, log != nil { throw ValidationError("--car and --log both determine the messages: leave one of them out") }
    guard SLCAN.bitRates.contains(bitRate) else {
      let rates = SLCAN.bitRates.map { "\($0)" }.joined(separator: ", ")
      throw ValidationError("--bit-rate \(bitRate) is not a rate of slcan: choose one of \(rates)")
    }
  }

  private var traffic: BusTraffic { (car?.traffic ?? .demo).repeated(!once) }

  func run() throws {
    guard case .slcan(let endpoint) = on else { return }
    let traffic = try log.map(traffic) ?? traffic
    let output = ActivityLog(activity, name: name, scheme: "slcan:")
    try serveBytes(on: endpoint, symlink: symlink, log: output) { _, _ in
      BusListener(traffic, bitRate: bitRate, faults: fault)
    }
  }

  private func traffic(_ path: String) throws -> BusTraffic {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.contents(of: path, limit: Self.maxLogSize) } catch {
      throw SimulatorError("cannot read \(path)", errno: error.code)
    }
    var skipped = 0
    let traffic: BusTraffic
    do throws(ValueError) { traffic = try BusTraffic(log: bytes, repeats: !once, skipped: &skipped) } catch {
      throw SimulatorError("cannot use \(path): \(error.description)")
    }
    if skipped > 0 { Console.writeError("\(path): \(skipped) frames of CAN FD are skipped: slcan has only classical CAN") }
    return traffic
  }
}

extension BusListener.Fault: ExpressibleByArgument {}
extension BusCar: ExpressibleByArgument {}

/// `vehiclesim dbc`: the definition of the simulated messages.
struct DBCOutput: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dbc", abstract: "Print a DBC file with the messages of vehiclesim can.",
    discussion: "Example:\n  vehiclesim dbc > car.dbc && vehiclectl import car.dbc --output /etc/vehicled/signals.d/car.toml")

  func run() { Console.write(BusTraffic.demoDBC) }
}
