// The state of NetworkManager from one reply: Wi-Fi devices, access points and connections. No I/O. Missing or invalid members are ignored.
// Source: NetworkManager's D-Bus reference: Device, Device.Wireless, AccessPoint, Connection.Active, Settings.Connection; NMDeviceType,
// NMDeviceState, NMActiveConnectionState. The ObjectManager at /org/freedesktop has all objects.

import DBus

struct NetworkSnapshot {
  /// A Wi-Fi device.
  struct Device: Equatable {
    var path: String
    var state: Int
    /// The active connection, or the one being activated.
    var active: String?
    var accessPoints: [String]
    /// The time of the last scan in ms of CLOCK_BOOTTIME, or -1 if there was none.
    var lastScan: Int

    /// Whether NetworkManager manages the device and it is available.
    var isUsable: Bool { state >= 30 }
    /// Whether the device has no connection (NM_DEVICE_STATE_DISCONNECTED).
    var isIdle: Bool { state == 30 }
  }

  struct Active: Equatable {
    enum State: Int {
      case unknown, activating, activated, deactivating, deactivated
    }

    var profile: String
    /// The display name.
    var id: String
    var uuid: String
    var state: State

    var isLive: Bool { state == .activating || state == .activated }
    /// Whether the connection is active or will be: it may wait for the deactivation of another one.
    var isLiveOrPending: Bool { isLive || state == .unknown }
  }

  private(set) var devices: [Device] = []
  private(set) var accessPoints: [String: AccessPoint] = [:]
  private(set) var actives: [String: Active] = [:]
  private(set) var profiles: Set<String> = []
  /// Whether Wi-Fi is disabled.
  private(set) var isSwitchedOff = false

  /// Reads the reply to GetManagedObjects.
  init(_ objects: DBusValue?) {
    let manager = NetworkManager.name
    for (path, interfaces) in objects?.dictionary ?? [:] {
      let interfaces = interfaces.dictionary ?? [:]
      func properties(_ suffix: String) -> [String: DBusValue]? { interfaces[manager + suffix]?.dictionary }
      if let root = properties("") { isSwitchedOff = root["WirelessEnabled"]?.bool == false }
      if let wireless = properties(".Device.Wireless"), let device = properties(".Device") { addDevice(device, wireless, at: path) }
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

  private mutating func addDevice(_ device: [String: DBusValue], _ wireless: [String: DBusValue], at path: String) {
    devices.append(
      Device(
        path: path, state: device["State"]?.int ?? 0,
        active: device["ActiveConnection"]?.string.flatMap { $0 == "/" ? nil : $0 },
        accessPoints: wireless["AccessPoints"]?.strings ?? [], lastScan: wireless["LastScan"]?.int ?? -1))
  }

  /// The usable devices, idle ones first.
  var usable: [Device] { devices.filter(\.isIdle) + devices.filter { $0.isUsable && !$0.isIdle } }

  /// The strongest access point with this name in range of the first usable device that has one, or of the device at `path`.
  func find(_ ssid: String, on path: String? = nil) -> (device: Device, accessPoint: String)? {
    for device in usable where path == nil || device.path == path {
      let matches = device.accessPoints.filter { accessPoints[$0]?.ssid == Array(ssid.utf8) }
      if let path = matches.max(by: { (accessPoints[$0]?.strength ?? 0) < (accessPoints[$1]?.strength ?? 0) }) { return (device, path) }
    }
    return nil
  }
}
