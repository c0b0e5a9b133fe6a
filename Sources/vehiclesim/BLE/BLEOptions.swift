// What a peripheral on BLE is like, on the command line.

import ArgumentParser
import Protocols

struct BLEOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Its address.", valueName: "address"))
  var address: String?

  @Option(
    help: ArgumentHelp(
      "The name of another that only advertises, and how strongly in dBm; or that somebody else is connected to. Any number.",
      valueName: "name[,rssi|,connected]"),
    transform: { Other($0) })
  var also: [Other] = []

  /// A peripheral that only advertises.
  struct Other {
    var name: String
    /// dBm; nil where nothing was said.
    var rssi: Int?

    /// Somebody else is connected to it.
    var isConnected = false

    init(_ text: String) {
      if text.hasSuffix(",connected") {
        name = String(text.dropLast(10))
        isConnected = true
        return
      }
      let comma = text.lastIndex(of: ",")
      rssi = comma.flatMap { Int(text[$0...].dropFirst()) }
      name = rssi == nil ? text : String(text[..<(comma ?? text.endIndex)])
    }
  }

  @Option(
    help: ArgumentHelp(
      "Its service and characteristics, SERVICE/NOTIFY/WRITE, or SERVICE/NOTIFY; usually the likeliest of the kind.", valueName: "uuids"),
    transform: { try BLEOptions.profile($0) })
  var gatt: GATTProfile?

  @Option(help: "The largest packet, 23 to 517.")
  var mtu: Int?

  @Option(help: "How it is written: without-response, with-response, both.")
  var writes: Writes?

  @Option(
    help: ArgumentHelp(
      "What goes wrong on the air: \(RadioFault.table.map { "\($0.form) (\($0.help))" }.joined(separator: "; ")). Any number.",
      valueName: "spec"), transform: { try RadioFault($0) })
  var air: [RadioFault] = []

  enum Writes: String, ExpressibleByArgument, CaseIterable {
    case withoutResponse = "without-response"
    case withResponse = "with-response"
    case both

    var flags: [String] {
      switch self {
      case .withoutResponse: ["write-without-response"]
      case .withResponse: ["write"]
      case .both: ["write-without-response", "write"]
      }
    }
  }

  var isGiven: Bool { address != nil || !also.isEmpty || gatt != nil || mtu != nil || writes != nil || !air.isEmpty }

  func validate() throws {
    if let mtu, !(23...517).contains(mtu) { throw ValidationError("--mtu \(mtu) is not possible: choose 23 to 517") }
  }

  private static func profile(_ text: String) throws(ValueError) -> GATTProfile {
    let uuids = text.split(separator: "/").map { GATTUUID(String($0)) }
    guard 2...3 ~= uuids.count, !uuids.contains(nil), let service = uuids[0] else {
      throw ValueError("\"\(text)\" is no profile: write SERVICE/NOTIFY/WRITE, as in FFF0/FFF1/FFF2, or SERVICE/NOTIFY")
    }
    return GATTProfile(service, notify: uuids[1], write: uuids.count == 3 ? uuids[2] : nil)
  }
}

extension PeerOptions {
  /// The air that was asked for, where peers of this kind fly.
  func peripheral(_ role: GATTRole, named usualName: String, traits: PeripheralTraits, isInstant: Bool) throws -> PeripheralSettings {
    guard let profile = ble.gatt ?? role.profiles.first else { throw SimulatorError("this kind has no profile on BLE: give --gatt") }
    return PeripheralSettings(
      name: name ?? usualName, address: (ble.address ?? "AA:BB:CC:00:11:22").uppercased(), profile: profile,
      writeFlags: (ble.writes ?? traits.writes).flags, mtu: ble.mtu ?? 23, others: ble.also, faults: ble.air, traits: traits,
      isInstant: isInstant)
  }
}

/// What peripherals of a kind are like beside their profile.
struct PeripheralTraits {
  /// How they are written, unless somebody says otherwise.
  var writes = BLEOptions.Writes.withoutResponse
  /// Their service stands in what they advertise.
  var isAdvertised = true
  /// What the characteristic that is written holds at first, where it can be read; then it is what was written last.
  var firstValue: [UInt8]?
  /// One machine for all connections, which goes on between them.
  var outlivesConnections = false
}
