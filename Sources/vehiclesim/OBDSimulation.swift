// `vehiclesim obd`: an ELM327 adapter with a car behind it. Only options; the adapter itself is a Peer.

import ArgumentParser
import Peers
import Protocols

struct OBDSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "obd",
    abstract: "An ELM327 adapter in a car that drives round and round.",
    discussion: """
      Cars (--car):

      \(helpTable(CarModel.allCases.map { ($0.rawValue, $0.help) }))

      The key (--key, any number): off, nobody answers, after 10 s the bus is dead, and the 12 V battery falls to rest; on, the car \
      stands, and an engine does not run; run, it drives. Codes can be cleared while no engine runs; they are back for the next client.

      Faults (--fault, any number). WHEN is N, every Nth reply of the car (10 if left out), or @S, once, S seconds \
      after the start of vehiclesim, for clients that are there then:

      \(helpTable(AdapterFault.table))

      Examples:
        vehiclesim obd --on pty --symlink /tmp/ev --baud 115200
        vehiclesim obd --on tcp:127.0.0.1:35000 --fault hang:50:4000
        vehiclesim obd --on tcp:127.0.0.1:35000 --car petrol --key off@60 --key on@120 --key run@130
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "Which car it is; see above.")
  var car = CarModel.eGMP

  @Option(
    help: ArgumentHelp("Turns the key so many seconds after the start; see above.", valueName: "position@s"),
    transform: { try Ignition.Turn($0) })
  var key: [Ignition.Turn] = []

  @Option(help: "Which chip the adapter says it is.")
  var chip = ELM327Adapter.Personality.elm327

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try AdapterFault($0) })
  var fault: [AdapterFault] = []

  @Option(help: ArgumentHelp("Bits a second of the adapter's serial line; without it bytes take no time.", valueName: "n"))
  var baud: Int?

  @Flag(help: "No waiting anywhere: for benches.")
  var instant = false

  static var gatt: GATTRole { .elm327 }
  static var usualName: String { "Veepeak" }

  func validate() throws {
    if let baud, !(300...10_000_000).contains(baud) { throw ValidationError("--baud \(baud) is no line speed: choose 300 to 10000000") }
  }

  func machine(number: UInt64, start: Instant) -> any Machine {
    ELM327Adapter(
      car: car.car(Ignition(origin: start, key)), name: options.name, personality: chip, timing: instant ? .instant : .real, baud: baud,
      faults: fault, seed: options.seed &+ number, connections: Int(clamping: number))
  }
}

extension CarModel: ExpressibleByArgument {}
extension ELM327Adapter.Personality: ExpressibleByArgument {}
