// `vehiclesim mirror`: options of the simulated smart mirror.

import ArgumentParser
import Cryptography
import Glibc
import Peers
import Protocols

struct MirrorSimulation: Simulation {
  static let configuration = CommandConfiguration(
    commandName: "mirror",
    abstract: "Simulate a smart mirror: its ESP32 on Bluetooth Low Energy, and its display.",
    discussion: """
      Faults (--fault, repeatable). WHEN is N for every Nth write (default 10), or @S for once, S seconds after the start of \
      vehiclesim. --radio-fault injects radio faults, such as rejected or unanswered writes:

      \(helpTable(MirrorFault.table))

      Example:
        vehiclesim mirror --on ble:unix:path=/tmp/bus --key-file /tmp/key \\
          --iv-file /tmp/iv -v

      -v also prints what the ESP32 stores, what the display shows, and input that would crash the real devices or corrupt their \
      data. On a TCP endpoint, each chunk of bytes that is read counts as one write; use it to forward writes from a real radio.
      """)

  @OptionGroup var options: PeerOptions

  @Option(help: "Set whether the firmware expects encrypted values (stock) or plain text (plain).")
  var profile = Firmware.stock

  @Option(
    help: ArgumentHelp("Read the key of the firmware from a file: ascii: and 16 characters, or hex: and 32 digits.", valueName: "file"))
  var keyFile: String?

  @Option(help: ArgumentHelp("Read the initialization vector from a file, in the same format.", valueName: "file"))
  var ivFile: String?

  @Option(help: ArgumentHelp("Inject a fault; see above.", valueName: "spec"), transform: { try MirrorFault($0) })
  var fault: [MirrorFault] = []

  @Flag(help: "Transmit without delay.")
  var instant = false

  enum Firmware: String, ExpressibleByArgument, CaseIterable { case stock, plain }

  static var gatt: PeripheralDescription { .mirror }
  static var defaultName: String { ESP32Mirror.name }
  static var traits: PeripheralTraits {
    PeripheralTraits(writes: .withResponse, advertisesService: false, initialValue: ESP32Mirror.initialValue, outlivesConnections: true)
  }

  func validate() throws {
    if case .pty = options.on { throw ValidationError("the mirror needs a Bluetooth endpoint: write --on ble:BUSADDRESS") }
    _ = try firmware()
  }

  func machine(number: UInt64, start: Instant) -> ESP32Mirror {
    // `validate` has read and checked both files.
    ESP32Mirror((try? firmware()) ?? .plain, origin: start, faults: fault)
  }

  private func firmware() throws -> MirrorFirmware {
    switch (profile, keyFile, ivFile) {
    case (.plain, nil, nil): return .plain
    case (.plain, _, _): throw ValidationError("plain firmware has no key: remove --key-file and --iv-file")
    case (.stock, let key?, let iv?):
      try Cryptography.load()
      return .stock(key: try secret("--key-file", key), iv: try secret("--iv-file", iv))
    case (.stock, _, _): throw ValidationError("stock firmware needs a key: add --key-file and --iv-file, or --profile plain")
    }
  }

  private func secret(_ option: String, _ path: String) throws -> [UInt8] {
    guard let file = fopen(path, "r") else { throw ValidationError("\(option): cannot read \(path)") }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
    while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
    do {
      return try MirrorCipher.sixteenBytes(bytes)
    } catch {
      throw ValidationError("\(option): \(error)")
    }
  }
}
