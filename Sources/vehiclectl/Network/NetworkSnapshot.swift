// What NetworkManager says is so, in one answer: Wi-Fi devices, access points, what is active. Pure. Absent and odd members
// count as not there.
// Facts: NetworkManager's D-Bus reference: Device, Device.Wireless, AccessPoint, Connection.Active, Settings.Connection; NMDeviceType,
// NMDeviceState, NMActiveConnectionState. All objects are told by the ObjectManager at /org/freedesktop.

import Bus

struct NetworkSnapshot {
  /// A Wi-Fi device.
  struct Device: Equatable {
    var path: String
    var state: Int
    /// What is active on it, or about to be.
    var active: String?
    var accessPoints: [String]
    /// Milliseconds on the kernel's boot clock; -1: never.
    var lastScan: Int

    /// Managed, and its radio is there.
    var isUsable: Bool { state >= 30 }
    /// Nothing uses it.
    var isIdle: Bool { state == 30 }
  }

  struct Active: Equatable {
    enum State: Int {
      case unknown, activating, activated, deactivating, deactivated
    }

    var profile: String
    /// Its name for a person.
    var id: String
    var uuid: String
    var state: State

    var isLive: Bool { state == .activating || state == .activated }
    /// It lives, or will when its device has left what was active there.
    var isDue: Bool { isLive || state == .unknown }
  }

  private(set) var devices: [Device] = []
  private(set) var accessPoints: [String: AccessPoint] = [:]
  private(set) var actives: [String: Active] = [:]
  private(set) var profiles: Set<String> = []
  /// Somebody switched Wi-Fi off.
  private(set) var isSwitchedOff = false

  /// Of the reply to GetManagedObjects.
  init(_ objects: BusValue?) {
    let manager = NetworkManager.name
    for (path, interfaces) in objects?.dictionary ?? [:] {
      let interfaces = interfaces.dictionary ?? [:]
      func properties(_ suffix: String) -> [String: BusValue]? { interfaces[manager + suffix]?.dictionary }
      if let root = properties("") { isSwitchedOff = root["WirelessEnabled"]?.bool == false }
      if let wireless = properties(".Device.Wireless"), let device = properties(".Device") { note(device, wireless, at: path) }
      if let point = properties(".AccessPoint").flatMap(AccessPoint.init) { accessPoints[path] = point }
      if let active = properties(".Connection.Active"), let profile = active["Connection"]?.string {
        actives[path] = Active(
          profile: profile, id: active["Id"]?.string ?? "", uuid: active["Uuid"]?.string ?? "",
          state: active["State"]?.int.flatMap(Active.State.init) ?? .unknown)
      }
      if interfaces[manager + ".Settings.Connection"] != nil { profiles.insert(path) }
    }
    devices.sort { $0.path < $1.path }
  }

  private mutating func note(_ device: [String: BusValue], _ wireless: [String: BusValue], at path: String) {
    devices.append(
      Device(
        path: path, state: device["State"]?.int ?? 0,
        active: device["ActiveConnection"]?.string.flatMap { $0 == "/" ? nil : $0 },
        accessPoints: wireless["AccessPoints"]?.strings ?? [], lastScan: wireless["LastScan"]?.int ?? -1))
  }

  /// The devices that could be used, those that nobody uses first.
  var usable: [Device] { devices.filter(\.isIdle) + devices.filter { $0.isUsable && !$0.isIdle } }

  /// The strongest access point of this name that a usable device hears, or just this device.
  func find(_ ssid: String, on path: String? = nil) -> (device: Device, accessPoint: String)? {
    for device in usable where path == nil || device.path == path {
      let found = device.accessPoints.filter { accessPoints[$0]?.ssid == Array(ssid.utf8) }
      if let path = found.max(by: { (accessPoints[$0]?.strength ?? 0) < (accessPoints[$1]?.strength ?? 0) }) { return (device, path) }
    }
    return nil
  }
}
