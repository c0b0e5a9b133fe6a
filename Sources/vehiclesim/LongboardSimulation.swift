// `vehiclesim longboard`: Torq's Arduino on an HM-10. Only options; the board itself is a Peer.

import ArgumentParser
import Peers
import Protocols

struct LongboardSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "longboard",
    abstract: "An electric longboard that is ridden round and round, with Torq's Arduino.",
    discussion: """
      Faults (--fault, any number). WHEN is N, every Nth message of the board (10 if left out), or @S, once, S seconds \
      after the start of vehiclesim:

      \(helpTable(BoardFault.table))

      Examples:
        vehiclesim longboard --on pty --symlink /tmp/board
        vehiclesim longboard --on tcp:127.0.0.1:9600 --dialect documented --fault silence:50:4000

      With -v it also says when the buzzer begins and ends.
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "Who begins: the host (as-built) or the board (documented).")
  var dialect = ArduinoBoard.Dialect.asBuilt

  @Option(help: ArgumentHelp("The number that switches a documented board's buzzer on.", valueName: "n"))
  var buzzerOn = 1

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try BoardFault($0) })
  var fault: [BoardFault] = []

  @Flag(help: "The board answers at once.")
  var instant = false

  static var gatt: GATTRole { .longboard }
  static var usualName: String { "HMSoft" }
  /// The Arduino runs on when its module's connection ends.
  static var traits: PeripheralTraits { PeripheralTraits(outlivesConnections: true) }

  func machine(number: UInt64, start: Instant) -> any Machine {
    ArduinoBoard(dialect, origin: start, isInstant: instant, buzzerOn: buzzerOn, faults: fault, seed: options.seed &+ number)
  }
}

extension ArduinoBoard.Dialect: ExpressibleByArgument {}
