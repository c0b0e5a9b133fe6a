// The parts of NetworkManager's D-Bus API that the toy's Wi-Fi setup needs, and messages for its errors. Only join, activate, deactivate
// and delete change anything. Source: NetworkManager's D-Bus reference (networkmanager.dev/docs/api). AddAndActivateConnection2 with the
// options persist and bind-activation requires NetworkManager 1.16.

import DBus
import Synchronization

struct NetworkManager {
  static let name = "org.freedesktop.NetworkManager"
  private static let path = "/org/freedesktop/NetworkManager"
  /// Timeouts in seconds. Calls that require the user's authorization take longer.
  private static let (replyTimeout, authorizationTimeout) = (5.0, 60.0)
  /// The DHCP timeout in seconds; shorter than NetworkManager's 45 s, so that it reports the failure before our own timeout.
  private static let addressTimeout: Int32 = 25

  private let bus: BlockingBus
  private let failures: Failures

  /// The reasons for failed activations, which NetworkManager reports only in a signal.
  private final class Failures: Sendable {
    private let reasons = Mutex<[String: Int]>([:])

    subscript(_ device: String) -> Int? { reasons.withLock { $0[device] } }
    func clear() { reasons.withLock { $0 = [:] } }

    /// Records the reason from a signal Device.StateChanged(new state, old state, reason) with the new state NM_DEVICE_STATE_FAILED (120).
    func record(_ signal: DBusMessage) {
      guard signal.member == "StateChanged", signal.body.count == 3, signal.body[0].int == 120, let device = signal.path else { return }
      reasons.withLock { $0[device] = signal.body[2].int }
    }
  }

  /// Connects to NetworkManager. Returns nil if there is no system bus, or no NetworkManager on it.
  init?(address: String = DBusDaemon.systemAddress) {
    let failures = Failures()
    self.failures = failures
    guard let bus = BlockingBus(address: address, signal: { failures.record($0) }) else { return nil }
    self.bus = bus
    let rule = "type='signal',sender='\(Self.name)',interface='\(Self.name).Device',member='StateChanged'"
    guard let owner = Self.callBus(bus, "GetNameOwner", Self.name)?.first?.string, Self.callBus(bus, "AddMatch", rule) != nil
    else { return nil }
    bus.receiveSignals(only: owner)
  }

  /// Calls a method of the bus daemon.
  private static func callBus(_ bus: BlockingBus, _ member: String, _ text: String) -> [DBusValue]? {
    try? bus.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, member, [.string(text)]), within: replyTimeout)
  }

  /// The NMDeviceStateReason of the last failed activation on a device; nil if unknown.
  func failure(of device: String) -> Int? { failures[device] }

  func clearFailures() { failures.clear() }

  /// The current state.
  func snapshot() throws(Failure) -> NetworkSnapshot {
    NetworkSnapshot(try call("/org/freedesktop", DBusDaemon.objectManager, "GetManagedObjects").first)
  }

  /// Starts a scan. Returns false if the user lacks permission. Other errors, such as that a scan is already running, are ignored.
  @discardableResult func scan(_ device: String) -> Bool {
    do throws(Failure) {
      _ = try call(device, Self.name + ".Device.Wireless", "RequestScan", [.properties([:])])
      return true
    } catch { return error != .noAccessToNetworks }
  }

  /// Starts joining an open network. The profile is temporary: NetworkManager deletes it when the connection or this process ends.
  func join(_ ssid: String, uuid: String, _ device: String, _ accessPoint: String) throws(Failure) {
    let settings: [(String, [String: DBusValue])] = [
      ("802-11-wireless", ["ssid": .bytes(Array(ssid.utf8))]),
      (
        "connection",
        [
          "id": .string("vehiclectl \(Output.oneLine(ssid))"), "uuid": .string(uuid), "type": .string("802-11-wireless"),
          "autoconnect": .bool(false),
        ]
      ),
      // The toy is not a gateway: keep the default route.
      (
        "ipv4",
        [
          "method": .string("auto"), "never-default": .bool(true), "may-fail": .bool(false), "dhcp-timeout": .int32(Self.addressTimeout),
        ]
      ),
      ("ipv6", ["method": .string("ignore")]),
    ]
    let connection = DBusValue.array(of: "{sa{sv}}", settings.map { .entry(.string($0.0), .properties($0.1)) })
    let options = DBusValue.properties(["persist": .string("volatile"), "bind-activation": .string("dbus-client")])
    _ = try call(
      Self.path, Self.name, "AddAndActivateConnection2", [connection, .path(device), .path(accessPoint), options],
      within: Self.authorizationTimeout)
  }

  /// Starts activating a profile on a device. Returns the path of the active connection.
  func activate(_ profile: String, _ device: String) throws(Failure) -> String? {
    let body = [DBusValue.path(profile), .path(device), .path("/")]
    return try call(Self.path, Self.name, "ActivateConnection", body, within: Self.authorizationTimeout).first?.string
  }

  /// Deactivates a connection.
  func deactivate(_ active: String) throws(Failure) { _ = try call(Self.path, Self.name, "DeactivateConnection", [.path(active)]) }

  /// Deletes a profile.
  func delete(_ profile: String) throws(Failure) { _ = try call(profile, Self.name + ".Settings.Connection", "Delete") }

  private func call(
    _ path: String, _ interface: String, _ member: String, _ body: [DBusValue] = [], within seconds: Double = replyTimeout
  ) throws(Failure) -> [DBusValue] {
    do throws(DBusError) {
      return try bus.call(.call(Self.name, path, interface, member, body), within: seconds)
    } catch {
      switch error {
      case .refused(let name, _)
      where name.hasSuffix(".PermissionDenied") || name.hasSuffix(".AccessDenied") || name.hasSuffix(".NotAuthorized"):
        throw .noAccessToNetworks
      case .refused(_, let text): throw .other("NetworkManager rejected the call: \(text.isEmpty ? "no reason given" : text)")
      case .timeout: throw .other("no reply from NetworkManager; see: journalctl -u NetworkManager")
      case .disconnected(let reason): throw .other("lost the connection to the system bus: \(reason)")
      case .unsendable(let what), .malformed(let what): throw .other("invalid D-Bus message to or from NetworkManager: \(what)")
      }
    }
  }
}
