// What every kind of peer shares on the command line, and how it is run. It knows machines, not protocols.

import ArgumentParser
import Glibc
import Protocols

/// On this command line an option is ArgumentParser's; Protocols has configuration options of that name.
typealias Option = ArgumentParser.Option

/// A kind of peer as a subcommand: it makes one machine for each client.
protocol Simulation: ParsableCommand {
  var place: Place { get }
  /// The machine for a client, counted from 0; `start` is the same for all of a run.
  func machine(number: UInt64, start: Instant) -> any Machine
  /// What it is on BLE.
  static var gatt: GATTRole { get }
  /// What it calls itself on BLE, unless a person names it.
  static var usualName: String { get }
  /// What else it is on BLE.
  static var traits: AirTraits { get }
  /// Nothing takes time.
  var instant: Bool { get }
}

extension Simulation {
  static var traits: AirTraits { AirTraits() }
}

extension Simulation {
  func run() throws {
    let loop = try Loop()
    let start = Clock.now
    let manner = Manner(place)
    switch place.on {
    case .pty:
      let port = try Pty(machine: machine(number: 0, start: start), symlink: place.symlink, loop: loop, manner: manner)
      defer { port.removeSymlink() }
      try loop.run()
    case .tcp(let host, let port):
      var number: UInt64 = 0
      let listener = try Listener(host: host, port: port, loop: loop, manner: manner) {
        defer { number += 1 }
        return self.machine(number: number, start: start)
      }
      manner.announce(listener.url)
      try loop.run()
    case .ble(let bus):
      var number: UInt64 = 0
      let air = try place.air(Self.gatt, named: Self.usualName, traits: Self.traits, isInstant: instant)
      let standIn = StandIn(air, bus: bus, loop: loop, manner: manner) {
        defer { number += 1 }
        return self.machine(number: number, start: start)
      }
      try withExtendedLifetime(standIn) { try loop.run() }
    }
  }
}

/// Form and meaning of faults, aligned for a help text.
func helpTable(_ rows: [(form: String, help: String)]) -> String {
  let width = rows.map(\.form.count).max() ?? 0
  return rows.map { "  \($0.form)\(String(repeating: " ", count: width - $0.form.count))  \($0.help)" }.joined(separator: "\n")
}

/// Where the peer stands, and how it behaves as a program.
struct Place: ParsableArguments {
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
struct Manner {
  private let quiet: Bool
  private let verbose: Bool
  private let name: String

  init(_ place: Place) { self.init(quiet: place.quiet, verbose: place.verbose, name: place.name) }

  init(quiet: Bool, verbose: Bool, name: String?) { (self.quiet, self.verbose, self.name) = (quiet, verbose, name ?? "") }

  /// Says where clients find it.
  func announce(_ url: String) {
    if !quiet { Terminal.say(url) }
  }

  /// Tells what happens to whom, if anybody wants to know. Clients chose some of the words: their control characters are
  /// taken out, which a terminal would obey.
  func tell(_ who: String, _ what: @autoclosure () -> String) {
    guard verbose else { return }
    let said = String(String.UnicodeScalarView(what().unicodeScalars.filter { $0.properties.generalCategory != .control }))
    Terminal.complain("\(name.isEmpty ? "" : name + " ")\(who): \(said)")
  }
}

enum Clock {
  /// The monotonic clock.
  static var now: Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(time.tv_sec) * .second + Instant(time.tv_nsec)
  }
}
