// NetworkManager as far as setting up a toy needs it: what it hears, and joining one network for a while. Owns the wording of its
// refusals. Must never change anything but by join, activate, deactivate and delete.
// Facts: NetworkManager's D-Bus reference (networkmanager.dev/docs/api): org.freedesktop.NetworkManager.AddAndActivateConnection2
// (since 1.16) with its options persist and bind-activation, ActivateConnection, DeactivateConnection, Device.Wireless.RequestScan.

import Bus

struct NetworkManager {
  static let name = "org.freedesktop.NetworkManager"
  private static let path = "/org/freedesktop/NetworkManager"
  /// Seconds. What needs a person's consent may take a while.
  private static let (answer, consent) = (5.0, 60.0)

  private let bus: SystemBus

  /// nil where there is no system bus, or no NetworkManager on it.
  init?(address: String = DBus.systemAddress) {
    guard let bus = SystemBus(address: address) else { return nil }
    self.bus = bus
    let asked = BusMessage.call(DBus.name, DBus.path, DBus.name, "NameHasOwner", [.string(Self.name)])
    guard (try? bus.call(asked, within: Self.answer))?.first?.bool == true else { return nil }
  }

  /// What is so now.
  func look() throws(Failure) -> NetworkSnapshot {
    NetworkSnapshot(try call("/org/freedesktop", DBus.objectManager, "GetManagedObjects").first)
  }

  /// Has a device listen for networks. That it is refused, as while another search goes on, does not matter.
  func scan(_ device: String) {
    _ = try? call(device, Self.name + ".Device.Wireless", "RequestScan", [.properties([:])])
  }

  /// Begins to join an open network, with a profile that is gone when it is left or when we are; gives what is active then.
  func join(_ ssid: String, uuid: String, _ device: String, _ accessPoint: String) throws(Failure) {
    let settings: [(String, [String: BusValue])] = [
      ("802-11-wireless", ["ssid": .bytes(Array(ssid.utf8))]),
      (
        "connection",
        [
          "id": .string("vehiclectl \(Output.oneLine(ssid))"), "uuid": .string(uuid), "type": .string("802-11-wireless"),
          "autoconnect": .bool(false),
        ]
      ),
      // The toy leads nowhere: whatever other way there is to the world stays.
      ("ipv4", ["method": .string("auto"), "never-default": .bool(true), "may-fail": .bool(false)]),
      ("ipv6", ["method": .string("ignore")]),
    ]
    let connection = BusValue.array(of: "{sa{sv}}", settings.map { .entry(.string($0.0), .properties($0.1)) })
    let options = BusValue.properties(["persist": .string("volatile"), "bind-activation": .string("dbus-client")])
    _ = try call(
      Self.path, Self.name, "AddAndActivateConnection2", [connection, .path(device), .path(accessPoint), options], within: Self.consent)
  }

  /// Begins to activate a profile on a device.
  func activate(_ profile: String, _ device: String) throws(Failure) {
    _ = try call(Self.path, Self.name, "ActivateConnection", [.path(profile), .path(device), .path("/")], within: Self.consent)
  }

  /// Leaves what is active.
  func deactivate(_ active: String) throws(Failure) { _ = try call(Self.path, Self.name, "DeactivateConnection", [.path(active)]) }

  /// Removes a profile.
  func delete(_ profile: String) throws(Failure) { _ = try call(profile, Self.name + ".Settings.Connection", "Delete") }

  private func call(
    _ path: String, _ interface: String, _ member: String, _ body: [BusValue] = [], within seconds: Double = answer
  ) throws(Failure) -> [BusValue] {
    do throws(BusError) {
      return try bus.call(.call(Self.name, path, interface, member, body), within: seconds)
    } catch {
      switch error {
      case .refused(let name, _)
      where name.hasSuffix(".PermissionDenied") || name.hasSuffix(".AccessDenied") || name.hasSuffix(".NotAuthorized"):
        throw .noAccessToNetworks
      case .refused(_, let text): throw .other("NetworkManager refuses: \(text.isEmpty ? "without a reason" : text)")
      case .timeout: throw .other("NetworkManager does not answer; see: journalctl -u NetworkManager")
      case .disconnected(let reason): throw .other("the system bus is gone: \(reason)")
      case .unsendable(let what), .malformed(let what): throw .other("NetworkManager and vehiclectl do not understand each other: \(what)")
      }
    }
  }
}
