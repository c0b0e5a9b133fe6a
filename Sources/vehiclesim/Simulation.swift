// The command-line options and the run loop that most simulations share.

import ArgumentParser
import Glibc
import Protocols
import ServiceRuntime

/// Resolves the ambiguity with `Protocols.Option`, a configuration option.
typealias Option = ArgumentParser.Option

/// A subcommand that simulates one kind of device. It creates one machine per client.
protocol Simulation: ParsableCommand {
  associatedtype Peer: Machine
  var options: PeerOptions { get }
  /// Creates the machine for client `number`, counted from 0. `start` is the start of the program.
  func machine(number: UInt64, start: Instant) -> Peer
  /// The GATT profiles of the device.
  static var gatt: PeripheralDescription { get }
  /// The BLE name, unless `--name` is given.
  static var defaultName: String { get }
  /// Other BLE properties.
  static var traits: PeripheralTraits { get }
  /// Whether all delays are 0.
  var instant: Bool { get }
}

extension Simulation {
  static var traits: PeripheralTraits { PeripheralTraits() }
}

extension Simulation {
  func run() throws { try serve(on: options.on, log: ActivityLog(options), machine) }

  /// Runs machines at this endpoint until the program ends. `machine` creates the one for a client, by its number and the start time.
  func serve<Served: Machine>(on endpoint: Endpoint, log: ActivityLog, _ machine: @escaping (UInt64, Instant) -> Served) throws {
    guard case .ble(let bus) = endpoint else {
      return try serveBytes(on: endpoint, symlink: options.symlink, log: log, machine)
    }
    let loop = try EventLoop()
    let start = SystemClock.monotonic
    var number: UInt64 = 0
    let settings = try options.peripheral(Self.gatt, named: Self.defaultName, traits: Self.traits, isInstant: instant)
    let simulation = BluetoothSimulation(settings, bus: bus, loop: loop, log: log) {
      defer { number += 1 }
      return machine(number, start)
    }
    try withExtendedLifetime(simulation) { try loop.run() }
  }
}

/// Runs machines at a pseudo-terminal or a TCP port until the program ends. `machine` creates the one for a client, by its number and the
/// start time.
func serveBytes<Served: Machine>(
  on endpoint: Endpoint, symlink: String?, log: ActivityLog, _ machine: @escaping (UInt64, Instant) -> Served
) throws {
  let loop = try EventLoop()
  let start = SystemClock.monotonic
  switch endpoint {
  case .slcan, .can, .ble:
    throw ValidationError("only vehiclesim obd and can have a CAN adapter: write pty, tcp:HOST:PORT or ble:BUSADDRESS")
  case .pty:
    let port = try Pty(machine(0, start), symlink: symlink, loop: loop, log: log)
    defer { port.removeSymlink() }
    try loop.run()
  case .tcp(let host, let port):
    var number: UInt64 = 0
    let url = try PeerServer.listen(host: host, port: port, loop: loop, log: log) {
      defer { number += 1 }
      return machine(number, start)
    }
    log.announce(url)
    try loop.run()
  }
}

/// Formats a two-column table for a help text of 80 columns, the last of which stays free.
func helpTable(_ rows: [(syntax: String, help: String)]) -> String {
  let width = rows.map(\.syntax.count).max() ?? 0
  return rows.map { row in
    var lines = ["  \(row.syntax)\(String(repeating: " ", count: width - row.syntax.count)) "]
    for word in row.help.split(separator: " ") {
      if lines[lines.count - 1].count + word.count >= 79 { lines.append(String(repeating: " ", count: width + 3)) }
      lines[lines.count - 1] += " \(word)"
    }
    return lines.joined(separator: "\n")
  }.joined(separator: "\n")
}

/// The options that most simulations share.
struct PeerOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Set the endpoint: pty; tcp:HOST:PORT (port 0: any free port); or ble:BUSADDRESS, a D-Bus bus for a mock BlueZ. obd: also slcan:pty, slcan:tcp:HOST:PORT, and can:INTERFACE.",
      valueName: "endpoint"),
    transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: ArgumentHelp("With pty: create a symbolic link to the terminal at this path, and remove it on exit.", valueName: "path"))
  var symlink: String?

  @Option(help: ArgumentHelp("Set the name of the device, as it appears in AT@2, over BLE and in -v output.", valueName: "name"))
  var name: String?

  @OptionGroup(title: "With ble") var ble: BLEOptions

  @Option(help: ArgumentHelp("Set the seed of random data: the same seed gives the same faults.", valueName: "n"))
  var seed: UInt64 = 1

  @OptionGroup var activity: ActivityOptions

  func validate() throws {
    if symlink != nil, on != .pty, on != .slcan(.pty) { throw ValidationError("--symlink needs --on pty") }
    if symlink?.isEmpty == true { throw ValidationError("--symlink needs a path") }
    if case .ble = on {
    } else if ble.hasAny {
      throw ValidationError("--address, --also, --gatt, --mtu, --writes and --radio-fault need --on ble:BUSADDRESS")
    }
  }
}

/// What a simulation prints.
struct ActivityOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Print connections, all bytes except secrets, and the actions of the device to standard error.")
  var verbose = false

  @Flag(name: .shortAndLong, help: "Do not print the link.")
  var quiet = false

  func validate() throws {
    if quiet && verbose { throw ValidationError("--quiet and --verbose are mutually exclusive") }
  }
}

/// The output of the program: the link URL, and the events that `--verbose` prints.
struct ActivityLog {
  private let options: ActivityOptions
  private let name: String
  /// What precedes the URL of an endpoint.
  private let scheme: String

  /// `scheme`: the protocol on the endpoint with its colon, if link URLs name it.
  init(_ options: PeerOptions, scheme: String = "") {
    self.init(options.activity, name: options.name, scheme: scheme)
  }

  init(_ options: ActivityOptions, name: String?, scheme: String = "") {
    (self.options, self.name, self.scheme) = (options, name ?? "", scheme)
  }

  /// Prints the link URL unless `--quiet` is given.
  func announce(_ url: String) {
    if !options.quiet { Console.write(scheme + url) }
  }

  /// Writes an event to standard error when `--verbose` is given. Control characters are removed, because clients choose parts of
  /// the text.
  func write(_ source: String, _ message: @autoclosure () -> String) {
    guard options.verbose else { return }
    let text = String(String.UnicodeScalarView(message().unicodeScalars.filter { $0.properties.generalCategory != .control }))
    Console.writeError("\(name.isEmpty ? "" : name + " ")\(source): \(text)")
  }
}
