// `vehiclesim heart-rate` and `vehiclesim running`: a strap and a foot pod. Only options; the sensors themselves are a Peer.

import ArgumentParser
import Peers
import Protocols

private let faultHelp = """
  Faults (--fault, any number). WHEN is N, every Nth message of the sensor (10 if left out), or @S, once, S seconds \
  after the start of vehiclesim:

  \(helpTable(SensorFault.table))
  """

struct HeartRateSimulation: SensorSimulation {
  static let configuration = CommandConfiguration(
    commandName: "heart-rate", abstract: "A heart rate strap on somebody who runs.", discussion: faultHelp)

  @OptionGroup var options: PeerOptions

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try SensorFault($0) })
  var fault: [SensorFault] = []

  static var gatt: GATTRole { .heartRate }
  static var usualName: String { "Polar H10 12345678" }
  static var model: WearableSensor.Model { .strap }
}

struct RunningSimulation: SensorSimulation {
  static let configuration = CommandConfiguration(
    commandName: "running", abstract: "A foot pod on somebody who runs.", discussion: faultHelp)

  @OptionGroup var options: PeerOptions

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try SensorFault($0) })
  var fault: [SensorFault] = []

  static var gatt: GATTRole { .running }
  static var usualName: String { "Stryd" }
  static var model: WearableSensor.Model { .footPod }
}

/// What both share.
protocol SensorSimulation: Simulation {
  static var model: WearableSensor.Model { get }
  var fault: [SensorFault] { get }
}

extension SensorSimulation {
  var instant: Bool { false }

  func validate() throws {
    guard case .ble = options.on else { throw ValidationError("a sensor is reached over Bluetooth only: --on ble:BUSADDRESS") }
  }

  func machine(number: UInt64, start: Instant) -> any Machine {
    WearableSensor(Self.model, origin: start, faults: fault, seed: options.seed &+ number)
  }
}
