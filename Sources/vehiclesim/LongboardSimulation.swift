// `vehiclesim longboard`: options of the simulated Torq longboard (an Arduino with an HM-10).

import ArgumentParser
import Peers
import Protocols

struct LongboardSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "longboard",
    abstract: "Simulate the Torq longboard on a repeating ride.",
    discussion: """
      Faults (--fault, repeatable). WHEN is N for every Nth message of the board (default 10), or @S for once, S seconds \
      after the start of vehiclesim:

      \(helpTable(BoardFault.table))

      Examples:
        vehiclesim longboard --on pty --symlink /tmp/board
        vehiclesim longboard --on tcp:127.0.0.1:9600 --dialect documented \\
          --fault silence:50:4000

      -v also prints when the buzzer starts and stops.
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "Set which side sends first: vehicled (as-built) or the board (documented).")
  var dialect = ArduinoBoard.Dialect.asBuilt

  @Option(help: ArgumentHelp("Set the value that switches the buzzer on (documented dialect).", valueName: "n"))
  var buzzerOn = 1

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try BoardFault($0) })
  var fault: [BoardFault] = []

  @Flag(help: "Reply without delay.")
  var instant = false

  static var gatt: PeripheralDescription { .longboard }
  static var defaultName: String { "HMSoft" }
  /// The Arduino keeps running when the connection to its module ends.
  static var traits: PeripheralTraits { PeripheralTraits(outlivesConnections: true) }

  func machine(number: UInt64, start: Instant) -> ArduinoBoard {
    ArduinoBoard(dialect, origin: start, isInstant: instant, buzzerOn: buzzerOn, faults: fault, seed: options.seed &+ number)
  }
}

extension ArduinoBoard.Dialect: ExpressibleByArgument {}
