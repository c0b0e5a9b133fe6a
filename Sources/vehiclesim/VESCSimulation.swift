// `vehiclesim vesc`: a VESC with a longboard under it. Only options; the VESC itself is a Peer.

import ArgumentParser
import Peers
import Protocols

struct VESCSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "vesc",
    abstract: "A VESC under a longboard that rolls round and round, or does as it is told.",
    discussion: """
      Faults (--fault, any number). WHEN is N, every Nth answer (10 if left out), or @S, once, S seconds \
      after the start of vehiclesim:

      \(helpTable(Fault<VESCFaultKind>.table))

      Examples:
        vehiclesim vesc --on pty --symlink /tmp/board
        vehiclesim vesc --on tcp:127.0.0.1:65102 --firmware 3.40 --fault noise:20
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "The firmware it runs.")
  var firmware = VESCModel.v600

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try Fault<VESCFaultKind>($0) })
  var fault: [Fault<VESCFaultKind>] = []

  @Flag(help: "No waiting anywhere: for benches.")
  var instant = false

  /// VESC's own modules speak Nordic's UART service. Facts: vesc_tool's bleuart.cpp.
  static var gatt: GATTRole { GATTRole(profiles: [.nordicUART], names: ["VESC"], isStream: true) }
  static var usualName: String { "VESC BLE UART" }

  func machine(number: UInt64, start: Instant) -> any Machine {
    VESC(firmware, timing: instant ? .instant : .real, faults: fault, seed: options.seed &+ number, origin: start)
  }
}

extension VESCModel: ExpressibleByArgument {}
