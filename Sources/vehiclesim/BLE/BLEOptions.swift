// Command-line options of a simulated BLE peripheral.

import ArgumentParser
import Protocols

struct BLEOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Set the Bluetooth address.", valueName: "address"))
  var address: String?

  @Option(
    help: ArgumentHelp(
      "Add a device that only advertises, with its RSSI in dBm, or one that is already connected. Repeatable.",
      valueName: "name[,rssi|,connected]"),
    transform: { OtherDevice($0) })
  var also: [OtherDevice] = []

  /// Another Bluetooth device in range.
  struct OtherDevice {
    var name: String
    /// The signal strength in dBm, or nil for the default.
    var rssi: Int?
    /// Whether the device is already connected; otherwise it only advertises.
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
      "Set the UUIDs: SERVICE/NOTIFY/WRITE, or SERVICE/NOTIFY if one characteristic has both roles (default: those of the device).",
      valueName: "uuids"),
    transform: { try BLEOptions.profile($0) })
  var gatt: GATTProfile?

  @Option(help: "Set the ATT MTU, 23 to 517 (default 23).")
  var mtu: Int?

  @Option(help: "Set the write types that the characteristic supports.")
  var writes: Writes?

  @Option(
    help: ArgumentHelp(
      "Inject a radio fault: \(RadioFault.table.map { "\($0.syntax) (\($0.help))" }.joined(separator: "; ")). Repeatable.",
      valueName: "spec"), transform: { try RadioFault($0) })
  var radioFault: [RadioFault] = []

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

  /// Whether any of these options is given.
  var hasAny: Bool { address != nil || !also.isEmpty || gatt != nil || mtu != nil || writes != nil || !radioFault.isEmpty }

  func validate() throws {
    if let mtu, !(23...517).contains(mtu) { throw ValidationError("--mtu \(mtu) is out of range: choose 23 to 517") }
  }

  private static func profile(_ text: String) throws(ValueError) -> GATTProfile {
    let uuids = text.split(separator: "/").map { GATTUUID(String($0)) }
    guard 2...3 ~= uuids.count, !uuids.contains(nil), let service = uuids[0] else {
      throw ValueError("invalid profile \"\(text)\": write SERVICE/NOTIFY/WRITE, for example FFF0/FFF1/FFF2, or SERVICE/NOTIFY")
    }
    return GATTProfile(service, notify: uuids[1], write: uuids.count == 3 ? uuids[2] : nil)
  }
}

extension PeerOptions {
  /// The settings of the peripheral. Throws if this kind of device has no BLE profile and `--gatt` is missing.
  func peripheral(
    _ description: PeripheralDescription, named defaultName: String, traits: PeripheralTraits, isInstant: Bool
  ) throws -> PeripheralSettings {
    guard let profile = ble.gatt ?? description.profiles.first else { throw SimulatorError("this kind has no BLE profile: add --gatt") }
    return PeripheralSettings(
      name: name ?? defaultName, address: (ble.address ?? "AA:BB:CC:00:11:22").uppercased(),
      isAddressGiven: ble.address != nil, profile: profile,
      writeFlags: (ble.writes ?? traits.writes).flags, mtu: ble.mtu ?? 23, others: ble.also, faults: ble.radioFault, traits: traits,
      isInstant: isInstant)
  }
}

/// The BLE properties of a kind of device, other than its GATT profile.
struct PeripheralTraits {
  /// The default write types.
  var writes = BLEOptions.Writes.withoutResponse
  /// Whether advertisements contain the service UUID.
  var advertisesService = true
  /// The initial value of the write characteristic, or nil if the characteristic cannot be read. A write replaces the value.
  var initialValue: [UInt8]?
  /// Whether one machine serves all connections and keeps running between them.
  var outlivesConnections = false
}
