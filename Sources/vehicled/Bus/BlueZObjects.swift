// Snapshots of BlueZ's objects: an object path and its current properties. A property of an unexpected type counts as
// absent.

import DBus
import Protocols
import ServiceRuntime

struct Adapter {
  static let interface = "org.bluez.Adapter1"
  let path: String
  let isPowered: Bool
  let isDiscovering: Bool
}

/// A peripheral that BlueZ has discovered.
struct Peripheral {
  static let interface = "org.bluez.Device1"
  let path: String
  let adapter: String
  let address: String
  let name: String?
  /// The RSSI in dBm; nil unless a scan is receiving the peripheral's advertisements.
  let rssi: Int?
  let isPaired: Bool
  let isConnected: Bool
  let areServicesResolved: Bool
  let services: [GATTUUID]

  /// The name and address for messages, escaped: `"Veepeak" (AA:BB:CC:DD:EE:FF)`.
  var label: String { name.map { "\(quoted($0)) (\(address))" } ?? address }
}

struct Characteristic {
  static let interface = "org.bluez.GattCharacteristic1"
  let path: String
  let uuid: GATTUUID
  let service: GATTUUID
  /// `read`, `write`, `write-without-response`, `notify`, `indicate` and others.
  let flags: Set<String>
  let mtu: Int?
  let supportsAcquireNotify: Bool
  let supportsAcquireWrite: Bool
}

extension BlueZ {
  /// The adapter with this name, such as `hci0`.
  func adapter(named name: String) -> Adapter? { adapter(path: Self.path(ofAdapter: name)) }
  static func path(ofAdapter name: String) -> String { "/org/bluez/\(name)" }

  func adapter(path: String) -> Adapter? {
    objects[path]?[Adapter.interface].map {
      Adapter(path: path, isPowered: $0["Powered"]?.bool ?? false, isDiscovering: $0["Discovering"]?.bool ?? false)
    }
  }

  var adapterNames: [String] {
    objects.filter { $0.value[Adapter.interface] != nil }.map { String($0.key.split(separator: "/").last ?? "") }.sorted()
  }

  func peripheral(_ path: String) -> Peripheral? {
    guard let properties = objects[path]?[Peripheral.interface] else { return nil }
    guard let address = properties["Address"]?.string, BLETarget.isAddress(address) else { return nil }
    return Peripheral(
      path: path, adapter: properties["Adapter"]?.string ?? "", address: address, name: properties["Name"]?.string,
      rssi: properties["RSSI"]?.int, isPaired: properties["Paired"]?.bool ?? false, isConnected: properties["Connected"]?.bool ?? false,
      areServicesResolved: properties["ServicesResolved"]?.bool ?? false,
      services: (properties["UUIDs"]?.strings ?? []).compactMap { GATTUUID($0) })
  }

  /// The peripherals of an adapter, in the order of their paths.
  func peripherals(of adapter: Adapter) -> [Peripheral] {
    objects.keys.filter { $0.hasPrefix(adapter.path + "/dev_") }.sorted().compactMap(peripheral).filter { $0.adapter == adapter.path }
  }

  /// The GATT table of a peripheral, sorted by path, which is also the order of the handles.
  func characteristics(of peripheral: String) -> [Characteristic] {
    objects.keys.filter { $0.hasPrefix(peripheral + "/") }.sorted().compactMap { path in
      guard let properties = objects[path]?[Characteristic.interface] else { return nil }
      guard let uuid = properties["UUID"]?.string.flatMap({ GATTUUID($0) }), let service = properties["Service"]?.string,
        let serviceUUID = objects[service]?["org.bluez.GattService1"]?["UUID"]?.string.flatMap({ GATTUUID($0) })
      else { return nil }
      return Characteristic(
        path: path, uuid: uuid, service: serviceUUID, flags: Set(properties["Flags"]?.strings ?? []), mtu: properties["MTU"]?.int,
        supportsAcquireNotify: properties["NotifyAcquired"] != nil, supportsAcquireWrite: properties["WriteAcquired"] != nil)
    }
  }
}
