// `vehiclesim vesc`: options of the simulated VESC.

import ArgumentParser
import Peers
import Protocols

struct VESCSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "vesc",
    abstract: "Simulate a VESC motor controller in a longboard, on a repeating ride until a client drives it.",
    discussion: """
      Faults (--fault, repeatable). WHEN is N for every Nth reply (default 10), or @S for once, S seconds \
      after the start of vehiclesim:

      \(helpTable(Fault<VESCFaultKind>.table))

      Examples:
        vehiclesim vesc --on pty --symlink /tmp/board
        vehiclesim vesc --on tcp:127.0.0.1:65102 --firmware 3.40 --fault noise:20
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "Set the version of the firmware.")
  var firmware = VESCModel.v600

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try Fault<VESCFaultKind>($0) })
  var fault: [Fault<VESCFaultKind>] = []

  @Flag(help: "Reply without delay.")
  var instant = false

  /// VESC's own Bluetooth modules use the Nordic UART service. Source: bleuart.cpp of vedderb/vesc_tool.
  static var gatt: PeripheralDescription { PeripheralDescription(profiles: [.nordicUART], names: ["VESC"], isStream: true) }
  static var defaultName: String { "VESC BLE UART" }

  func machine(number: UInt64, start: Instant) -> VESC {
    VESC(firmware, timing: instant ? .instant : .real, faults: fault, seed: options.seed &+ number, origin: start)
  }
}

extension VESCModel: ExpressibleByArgument {}
