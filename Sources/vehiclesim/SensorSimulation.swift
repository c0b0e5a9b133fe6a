// `vehiclesim heart-rate` and `vehiclesim foot-pod`: options of the simulated heart rate strap and foot pod.

import ArgumentParser
import Peers
import Protocols

private func faultHelp(_ faults: [SensorFaultKind]) -> String {
  """
  Faults (--fault, repeatable). WHEN is N for every Nth message of the sensor (default 10), or @S for once, S seconds \
  after the start of vehiclesim:

  \(helpTable(faults.map { ($0.syntax, $0.help) }))
  """
}

struct HeartRateSimulation: SensorSimulation {
  static let configuration = CommandConfiguration(
    commandName: "heart-rate", abstract: "Simulate a heart rate strap worn by a runner.", discussion: faultHelp(SensorFaultKind.allCases))

  @OptionGroup var options: PeerOptions

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try SensorFault($0) })
  var fault: [SensorFault] = []

  static var gatt: PeripheralDescription { .heartRate }
  static var defaultName: String { "Polar H10 12345678" }
  static var model: WearableSensor.Model { .strap }
}

struct FootPodSimulation: SensorSimulation {
  static let configuration = CommandConfiguration(
    commandName: "foot-pod", abstract: "Simulate a foot pod worn by a runner.",
    discussion: faultHelp(SensorFaultKind.allCases.filter { !$0.isStrapOnly }))

  @OptionGroup var options: PeerOptions

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try SensorFault($0) })
  var fault: [SensorFault] = []

  static var gatt: PeripheralDescription { .footPod }
  static var defaultName: String { "Stryd" }
  static var model: WearableSensor.Model { .footPod }
}

/// A subcommand that simulates a wearable sensor.
protocol SensorSimulation: Simulation {
  static var model: WearableSensor.Model { get }
  var fault: [SensorFault] { get }
}

extension SensorSimulation {
  var instant: Bool { false }

  func validate() throws {
    if Self.model == .footPod, let fault = fault.first(where: \.kind.isStrapOnly) {
      throw ValidationError("a foot pod has no fault \(fault.kind.rawValue): choose one that --help lists")
    }
    guard case .ble = options.on else { throw ValidationError("the sensor needs a Bluetooth endpoint: write --on ble:BUSADDRESS") }
  }

  func machine(number: UInt64, start: Instant) -> WearableSensor {
    WearableSensor(Self.model, origin: start, faults: fault, seed: options.seed &+ number)
  }
}
