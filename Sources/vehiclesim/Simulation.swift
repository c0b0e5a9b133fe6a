// What every kind of peer shares on the command line, and how it is run. It knows machines, not protocols.

import ArgumentParser
import Glibc
import Protocols

/// On this command line an option is ArgumentParser's; Protocols has configuration options of that name.
typealias Option = ArgumentParser.Option

/// A kind of peer as a subcommand: it makes one machine for each client.
protocol Simulation: ParsableCommand {
  var options: PeerOptions { get }
  /// The machine for a client, counted from 0; `start` is the same for all of a run.
  func machine(number: UInt64, start: Instant) -> any Machine
  /// What it is on BLE.
  static var gatt: GATTRole { get }
  /// What it calls itself on BLE, unless a person names it.
  static var usualName: String { get }
  /// What else it is on BLE.
  static var traits: PeripheralTraits { get }
  /// Nothing takes time.
  var instant: Bool { get }
}

extension Simulation {
  static var traits: PeripheralTraits { PeripheralTraits() }
}

extension Simulation {
  func run() throws {
    let loop = try EventLoop()
    let start = SimulatorClock.now
    let log = ActivityLog(options)
    switch options.on {
    case .pty:
      let port = try Pty(machine: machine(number: 0, start: start), symlink: options.symlink, loop: loop, log: log)
      defer { port.removeSymlink() }
      try loop.run()
    case .tcp(let host, let port):
      var number: UInt64 = 0
      let listener = try PeerServer(host: host, port: port, loop: loop, log: log) {
        defer { number += 1 }
        return self.machine(number: number, start: start)
      }
      log.announce(listener.url)
      try loop.run()
    case .ble(let bus):
      var number: UInt64 = 0
      let settings = try options.peripheral(Self.gatt, named: Self.usualName, traits: Self.traits, isInstant: instant)
      let mock = MockBlueZ(settings, bus: bus, loop: loop, log: log) {
        defer { number += 1 }
        return self.machine(number: number, start: start)
      }
      try withExtendedLifetime(mock) { try loop.run() }
    }
  }
}

/// Form and meaning of faults, aligned for a help text.
func helpTable(_ rows: [(form: String, help: String)]) -> String {
  let width = rows.map(\.form.count).max() ?? 0
  return rows.map { "  \($0.form)\(String(repeating: " ", count: width - $0.form.count))  \($0.help)" }.joined(separator: "\n")
}

/// Where the peer stands, and how it behaves as a program.
struct PeerOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where clients find it: pty; tcp:HOST:PORT (port 0 picks one); or ble:BUSADDRESS, a message bus where it stands in for BlueZ.",
      valueName: "place"),
    transform: { try Endpoint($0) })
  var on: Endpoint

  @Option(help: ArgumentHelp("With pty: a link to it under this path, for as long as it runs.", valueName: "path"))
  var symlink: String?

  @Option(help: ArgumentHelp("What it calls itself (AT@2, on BLE, and in -v).", valueName: "name"))
  var name: String?

  @OptionGroup(title: "With ble") var ble: BLEOptions

  @Option(help: ArgumentHelp("Chooses the noise: the same seed gives the same faults.", valueName: "n"))
  var seed: UInt64 = 1

  @Flag(name: .shortAndLong, help: "Show clients and every byte on standard error.")
  var verbose = false

  @Flag(name: .shortAndLong, help: "Do not print the link.")
  var quiet = false

  func validate() throws {
    if symlink != nil, on != .pty { throw ValidationError("--symlink needs --on pty") }
    if symlink?.isEmpty == true { throw ValidationError("--symlink needs a path") }
    if case .ble = on {
    } else if ble.isGiven {
      throw ValidationError("--address, --also, --gatt, --mtu, --writes and --air need --on ble:BUSADDRESS")
    }
    if quiet && verbose { throw ValidationError("--quiet and --verbose exclude each other") }
  }
}

/// How loud it is.
struct ActivityLog {
  private let quiet: Bool
  private let verbose: Bool
  private let name: String

  init(_ options: PeerOptions) { self.init(quiet: options.quiet, verbose: options.verbose, name: options.name) }

  init(quiet: Bool, verbose: Bool, name: String?) { (self.quiet, self.verbose, self.name) = (quiet, verbose, name ?? "") }

  /// Says where clients find it.
  func announce(_ url: String) {
    if !quiet { Console.write(url) }
  }

  /// Writes an event to standard error when `--verbose` is given. Control characters are removed, because clients choose parts of
  /// the text.
  func write(_ source: String, _ message: @autoclosure () -> String) {
    guard verbose else { return }
    let text = String(String.UnicodeScalarView(message().unicodeScalars.filter { $0.properties.generalCategory != .control }))
    Console.writeError("\(name.isEmpty ? "" : name + " ")\(source): \(text)")
  }
}

enum SimulatorClock {
  /// The monotonic clock.
  static var now: Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(time.tv_sec) * .second + Instant(time.tv_nsec)
  }
}
