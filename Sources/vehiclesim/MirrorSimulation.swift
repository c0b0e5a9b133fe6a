// `vehiclesim mirror`: the ESP32 of a smart mirror, and the display behind it. Only options; the mirror itself is a Peer.

import ArgumentParser
import Glibc
import Peers
import Protocols

struct MirrorSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "mirror",
    abstract: "A smart mirror: an ESP32 on Bluetooth Low Energy, and the display that fetches what it is told.",
    discussion: """
      Faults (--fault, any number). WHEN is N, every Nth write (10 if left out), or @S, once, S seconds after the start of \
      vehiclesim; what goes wrong between the two (writes that are refused, never answered) is --air's:

      \(helpTable(MirrorFault.table))

      Example:
        vehiclesim mirror --on ble:unix:path=/tmp/bus --key-file /tmp/key --iv-file /tmp/iv -v

      With -v it tells what is kept, what the display shows, and what would have crashed. On tcp: every piece that is read \
      counts as one write, for those who pass on what a radio of theirs was told.
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "What its firmware takes: what is encrypted (stock), or texts (plain).")
  var profile = Firmware.stock

  @Option(help: ArgumentHelp("The firmware's key: a file with ascii: and 16 characters, or hex: and 32 digits.", valueName: "file"))
  var keyFile: String?

  @Option(help: ArgumentHelp("Its initialization vector, in the same form.", valueName: "file"))
  var ivFile: String?

  @Option(help: ArgumentHelp("What goes wrong, and when; see above.", valueName: "spec"), transform: { try MirrorFault($0) })
  var fault: [MirrorFault] = []

  @Flag(help: "The air takes no time.")
  var instant = false

  enum Firmware: String, ExpressibleByArgument, CaseIterable { case stock, plain }

  static var gatt: GATTRole { .mirror }
  static var usualName: String { ESP32Mirror.name }
  static var traits: PeripheralTraits {
    PeripheralTraits(writes: .withResponse, isAdvertised: false, firstValue: ESP32Mirror.firstValue, outlivesConnections: true)
  }

  func validate() throws {
    if case .pty = options.on { throw ValidationError("a mirror is reached over Bluetooth: --on ble:BUSADDRESS") }
    _ = try firmware()
  }

  func machine(number: UInt64, start: Instant) -> any Machine {
    // Read and checked before.
    ESP32Mirror((try? firmware()) ?? .plain, origin: start, faults: fault)
  }

  private func firmware() throws -> MirrorFirmware {
    switch (profile, keyFile, ivFile) {
    case (.plain, nil, nil): return .plain
    case (.plain, _, _): throw ValidationError("firmware that takes plain texts has no key: leave --key-file and --iv-file out")
    case (.stock, let key?, let iv?): return .stock(key: try secret("--key-file", key), iv: try secret("--iv-file", iv))
    case (.stock, _, _): throw ValidationError("the firmware has a key: give --key-file and --iv-file, or --profile plain")
    }
  }

  private func secret(_ option: String, _ path: String) throws -> [UInt8] {
    guard let file = fopen(path, "r") else { throw ValidationError("\(option): cannot read \(path)") }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
    while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
    do {
      return try MirrorCipher.sixteen(bytes)
    } catch {
      throw ValidationError("\(option): \(error)")
    }
  }
}
