// `vehiclesim obd`: options of the simulated ELM327 or CAN adapter and its car.

import ArgumentParser
import Peers
import Protocols
import ServiceRuntime

struct OBDSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "obd",
    abstract: "Simulate an ELM327 or CAN adapter in a car on a repeating drive cycle.",
    discussion: """
      Cars (--car):

      \(helpTable(CarModel.allCases.map { ($0.rawValue, $0.help) }))

      Positions of the ignition key (--key, repeatable). off: no ECU responds, the bus goes down after 10 s, and the 12 V battery falls to \
      its resting voltage; on: the car is stationary with the engine off; run: the car drives. Clients can clear the trouble codes while \
      the engine is off; they are set again for the next client.

      Faults (--fault, repeatable). WHEN is N for every Nth reply of the car (default 10), or @S for once, S seconds \
      after the start of vehiclesim, for clients that are connected at that time:

      \(helpTable(AdapterFault.table))

      With --on slcan:pty or slcan:tcp:HOST:PORT, the adapter is a CAN adapter that speaks slcan; with can:INTERFACE, the ECUs are on a CAN \
      interface of the kernel. Their faults (WHEN counts requests; garbage and silent need slcan):

      \(helpTable(CANFault.table))

      Examples:
        vehiclesim obd --on pty --symlink /tmp/ev --baud 115200
        vehiclesim obd --on tcp:127.0.0.1:35000 --fault hang:50:4000
        vehiclesim obd --on slcan:tcp:127.0.0.1:3333 --fault lost-frame:100
        vehiclesim obd --on can:vcan0
        vehiclesim obd --on tcp:127.0.0.1:35000 --car petrol \\
          --key off@60 --key on@120 --key run@130
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "Set the car; see above.")
  var car = CarModel.eGMP

  @Option(
    help: ArgumentHelp("Turn the key to this position, this many seconds after the start; see above.", valueName: "position@s"),
    transform: { try Ignition.Turn($0) })
  var key: [Ignition.Turn] = []

  @Option(help: "Set the adapter's chip.")
  var chip = ELM327Adapter.Personality.elm327

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"))
  var fault: [String] = []

  @Option(help: ArgumentHelp("Simulate the transmission time of a serial line at this baud rate (default: none).", valueName: "n"))
  var baud: Int?

  @Flag(help: "Reply without delay.")
  var instant = false

  static var gatt: PeripheralDescription { .elm327 }
  static var defaultName: String { "Veepeak" }

  func validate() throws {
    if isFrameInterface {
      let faults = try canFaults
      if case .can = options.on, let fault = faults.first(where: { $0.kind == .garbage || $0.kind == .silent }) {
        throw ValidationError("--fault \(fault.kind.rawValue) is a fault of a slcan adapter: use it with --on slcan:…")
      }
      if case .can = options.on, options.name != nil { throw ValidationError("--name is for adapters, and can: has none; remove it") }
      if baud != nil || chip != .elm327 { throw ValidationError("--baud and --chip are not for a CAN adapter") }
    } else {
      _ = try adapterFaults
    }
    if let baud, !(300...10_000_000).contains(baud) { throw ValidationError("--baud \(baud) is out of range: choose 300 to 10000000") }
  }

  private var isFrameInterface: Bool {
    switch options.on {
    case .slcan, .can: true
    case .pty, .tcp, .ble: false
    }
  }
  private var adapterFaults: [AdapterFault] { get throws { try fault.map { try AdapterFault($0) } } }
  private var canFaults: [CANFault] { get throws { try fault.map { try CANFault($0) } } }

  func machine(number: UInt64, start: Instant) -> ELM327Adapter {
    // `validate` has parsed the faults.
    ELM327Adapter(
      car: car.car(Ignition(origin: start, key)), name: options.name, personality: chip, timing: instant ? .instant : .real, baud: baud,
      faults: (try? adapterFaults) ?? [], seed: options.seed &+ number, connections: Int(clamping: number))
  }

  func run() throws {
    switch options.on {
    case .slcan(let endpoint):
      let faults = try canFaults
      try serve(on: endpoint, log: ActivityLog(options, scheme: "slcan:")) { number, start in
        SLCANAdapter(
          car: car.car(Ignition(origin: start, key)), name: options.name, isInstant: instant, faults: faults, seed: options.seed &+ number)
      }
    case .can(let interface):
      let loop = try EventLoop()
      let node = ECUNode(car: car.car(Ignition(origin: SystemClock.monotonic, key)), isInstant: instant, faults: try canFaults)
      let port = try CANPort(node, interface: interface, loop: loop, log: ActivityLog(options))
      try withExtendedLifetime(port) { try loop.run() }
    case .pty, .tcp, .ble: try serve(on: options.on, log: ActivityLog(options), machine)
    }
  }
}

extension CarModel: ExpressibleByArgument {}
extension ELM327Adapter.Personality: ExpressibleByArgument {}
