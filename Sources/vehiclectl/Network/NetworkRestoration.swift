// The previous connection of a Wi-Fi device, and how to restore it. Removes only its own profile.

import Glibc

struct NetworkRestoration {
  /// The time in seconds to wait for the previous connection to return.
  private static let timeout = 25.0

  let device: String
  /// The previously active profile.
  let previous: (profile: String, id: String)?
  /// The UUID of our own profile.
  var uuid = ""
  /// The path of our own profile, once known.
  var profile: String?

  init(_ device: NetworkSnapshot.Device, in snapshot: NetworkSnapshot) {
    self.device = device.path
    let active = device.active.flatMap { snapshot.actives[$0] }
    previous = active.flatMap { $0.isLive ? ($0.profile, $0.id) : nil }
  }

  /// Finds the active connection of our own profile, and stores the path of the profile.
  mutating func findOwnConnection(in snapshot: NetworkSnapshot) -> (path: String, active: NetworkSnapshot.Active)? {
    guard let own = snapshot.actives.first(where: { $0.value.uuid == uuid }) else { return nil }
    profile = own.value.profile
    return (own.key, own.value)
  }

  /// Restores the previous connection and deletes our profile. Returns a message about the result; nil if nothing was changed.
  mutating func restore(_ ssid: String, _ networks: NetworkManager) -> String? {
    do throws(Failure) {
      let snapshot = try networks.snapshot()
      _ = findOwnConnection(in: snapshot)
      if profile == nil, isRestored(snapshot) { return nil }  // joining was rejected
      var message = "disconnected from \"\(Output.oneLine(ssid))\""
      if let previous { message = reconnect(previous, networks) }
      if let own = findOwnConnection(in: try networks.snapshot()), own.active.isLive { try networks.deactivate(own.path) }
      if let profile, try remains(profile, networks) { try networks.delete(profile) }
      return message
    } catch {
      let remedy = previous.map { "; to reconnect: \(Self.reconnectCommand($0.id))" } ?? ""
      return "cannot disconnect from \"\(Output.oneLine(ssid))\": \(error.message)\(remedy)"
    }
  }

  private func reconnect(_ previous: (profile: String, id: String), _ networks: NetworkManager) -> String {
    var reason = "timeout"
    do throws(Failure) {
      if try waitForReconnection(previous, networks) { return "reconnected to \"\(Output.oneLine(previous.id))\"" }
    } catch { reason = error.message }
    return "cannot reconnect to \"\(Output.oneLine(previous.id))\": \(reason); try: \(Self.reconnectCommand(previous.id))"
  }

  /// Waits until the previous profile is active again, and activates it if NetworkManager does not reconnect by itself. Returns false at
  /// the timeout or after three attempts.
  private func waitForReconnection(_ previous: (profile: String, id: String), _ networks: NetworkManager) throws(Failure) -> Bool {
    let deadline = Clock.monotonic + Self.timeout
    var attempts = 0
    var activation: String?
    while Clock.monotonic < deadline {
      let snapshot = try networks.snapshot()
      if isRestored(snapshot) { return true }
      let active = active(snapshot)
      let isReconnecting = active?.profile == previous.profile && active?.isLive == true
      if !isReconnecting, activation.flatMap({ snapshot.actives[$0] })?.isLiveOrPending != true {
        attempts += 1
        guard attempts <= 3 else { break }
        activation = try networks.activate(previous.profile, device)
      }
      usleep(300_000)
    }
    return false
  }

  /// Whether a profile still exists 2 s after its deactivation; NetworkManager deletes a volatile one.
  private func remains(_ profile: String, _ networks: NetworkManager) throws(Failure) -> Bool {
    for _ in 0..<10 {
      guard try networks.snapshot().profiles.contains(profile) else { return false }
      usleep(200_000)
    }
    return true
  }

  private func active(_ snapshot: NetworkSnapshot) -> NetworkSnapshot.Active? {
    snapshot.devices.first { $0.path == device }?.active.flatMap { snapshot.actives[$0] }
  }

  /// Whether the device has its previous connection again, or none if it had none.
  private func isRestored(_ snapshot: NetworkSnapshot) -> Bool {
    let active = active(snapshot)
    return active?.profile == previous?.profile && (active == nil || active?.state == .activated)
  }

  /// The shell command to reconnect, quoted, because a network may have any name.
  static func reconnectCommand(_ id: String) -> String {
    "nmcli connection up '\(Output.oneLine(id).split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
  }
}
