// NetworkManager as far as setting up a toy needs it: what it hears, and joining one network for a while. Owns the wording of its
// refusals. Must never change anything but by join, activate, deactivate and delete.
// Facts: NetworkManager's D-Bus reference (networkmanager.dev/docs/api): org.freedesktop.NetworkManager.AddAndActivateConnection2
// (since 1.16) with its options persist and bind-activation, ActivateConnection, DeactivateConnection, Device.Wireless.RequestScan.

import Bus
import Synchronization

struct NetworkManager {
  static let name = "org.freedesktop.NetworkManager"
  private static let path = "/org/freedesktop/NetworkManager"
  /// Seconds. What needs a person's consent may take a while.
  private static let (answer, consent) = (5.0, 60.0)
  /// Seconds for an address. NetworkManager's own 45 are as long as anybody waits: nobody would hear what was missing.
  private static let addressTimeout: Int32 = 25

  private let bus: BlockingBus
  private let failures: Failures

  /// Why activations failed: NetworkManager tells it in passing, and shows it for a moment only.
  private final class Failures: Sendable {
    private let reasons = Mutex<[String: Int]>([:])

    subscript(_ device: String) -> Int? { reasons.withLock { $0[device] } }
    func clear() { reasons.withLock { $0 = [:] } }

    /// Device.StateChanged(new state, old state, reason), where the new state is NM_DEVICE_STATE_FAILED.
    func note(_ signal: BusMessage) {
      guard signal.member == "StateChanged", signal.body.count == 3, signal.body[0].int == 120, let device = signal.path else { return }
      reasons.withLock { $0[device] = signal.body[2].int }
    }
  }

  /// nil where there is no system bus, or no NetworkManager on it.
  init?(address: String = DBus.systemAddress) {
    let failures = Failures()
    self.failures = failures
    guard let bus = BlockingBus(address: address, signal: { failures.note($0) }) else { return nil }
    self.bus = bus
    let rule = "type='signal',sender='\(Self.name)',interface='\(Self.name).Device',member='StateChanged'"
    guard let owner = Self.ask(bus, "GetNameOwner", Self.name)?.first?.string, Self.ask(bus, "AddMatch", rule) != nil else { return nil }
    bus.receiveSignals(only: owner)
  }

  /// Asks the bus itself.
  private static func ask(_ bus: BlockingBus, _ member: String, _ text: String) -> [BusValue]? {
    try? bus.call(.call(DBus.name, DBus.path, DBus.name, member, [.string(text)]), within: answer)
  }

  /// Why the last activation on a device failed, as NMDeviceStateReason; nil: it did not, or nobody said.
  func failure(of device: String) -> Int? { failures[device] }

  func clearFailures() { failures.clear() }

  /// What is so now.
  func snapshot() throws(Failure) -> NetworkSnapshot {
    NetworkSnapshot(try call("/org/freedesktop", DBus.objectManager, "GetManagedObjects").first)
  }

  /// Has a device listen for networks; says whether this user may have it. Other refusals, as while a search goes on, do not matter.
  @discardableResult func scan(_ device: String) -> Bool {
    do throws(Failure) {
      _ = try call(device, Self.name + ".Device.Wireless", "RequestScan", [.properties([:])])
      return true
    } catch { return error != .noAccessToNetworks }
  }

  /// Begins to join an open network, with a profile that is gone when it is left or when we are.
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
      (
        "ipv4",
        [
          "method": .string("auto"), "never-default": .bool(true), "may-fail": .bool(false), "dhcp-timeout": .int32(Self.addressTimeout),
        ]
      ),
      ("ipv6", ["method": .string("ignore")]),
    ]
    let connection = BusValue.array(of: "{sa{sv}}", settings.map { .entry(.string($0.0), .properties($0.1)) })
    let options = BusValue.properties(["persist": .string("volatile"), "bind-activation": .string("dbus-client")])
    _ = try call(
      Self.path, Self.name, "AddAndActivateConnection2", [connection, .path(device), .path(accessPoint), options], within: Self.consent)
  }

  /// Begins to activate a profile on a device, after what is active there was left. Gives the activation's path; asked for again it
  /// begins anew.
  func activate(_ profile: String, _ device: String) throws(Failure) -> String? {
    try call(Self.path, Self.name, "ActivateConnection", [.path(profile), .path(device), .path("/")], within: Self.consent).first?.string
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
