// The previous connection of a Wi-Fi device, and how to restore it. Removes only its own profile.

import Glibc

struct NetworkRestoration {
  /// Seconds.
  private static let timeout = 25.0

  let device: String
  /// The previously active profile.
  let before: (profile: String, id: String)?
  /// The UUID of our own profile.
  var uuid = ""
  /// The path of our own profile, once known.
  var profile: String?

  init(_ device: NetworkSnapshot.Device, in found: NetworkSnapshot) {
    self.device = device.path
    let active = device.active.flatMap { found.actives[$0] }
    before = active.flatMap { $0.isLive ? ($0.profile, $0.id) : nil }
  }

  /// Finds the activation of our own profile.
  mutating func ours(in found: NetworkSnapshot) -> (path: String, active: NetworkSnapshot.Active)? {
    guard let ours = found.actives.first(where: { $0.value.uuid == uuid }) else { return nil }
    profile = ours.value.profile
    return (ours.key, ours.value)
  }

  /// Restores the previous connection and removes our profile. Returns a message about the result; nil if nothing was changed.
  mutating func restore(_ ssid: String, _ networks: NetworkManager) -> String? {
    do throws(Failure) {
      let found = try networks.snapshot()
      _ = ours(in: found)
      if profile == nil, isRestored(found) { return nil }  // joining was rejected
      var message = "disconnected from \"\(Output.oneLine(ssid))\""
      if let before { message = reconnect(before, networks) }
      if let ours = ours(in: try networks.snapshot()), ours.active.isLive { try networks.deactivate(ours.path) }
      if let profile, try remains(profile, networks) { try networks.delete(profile) }
      return message
    } catch {
      let remedy = before.map { "; to reconnect: \(Self.command($0.id))" } ?? ""
      return "cannot disconnect from \"\(Output.oneLine(ssid))\": \(error.message)\(remedy)"
    }
  }

  private func reconnect(_ before: (profile: String, id: String), _ networks: NetworkManager) -> String {
    var reason = "timeout"
    do throws(Failure) {
      if try isRestored(before, networks) { return "reconnected to \"\(Output.oneLine(before.id))\"" }
    } catch { reason = error.message }
    return "cannot reconnect to \"\(Output.oneLine(before.id))\": \(reason); try: \(Self.command(before.id))"
  }

  /// Waits until the previous profile is active again. NetworkManager may reconnect by itself; it is asked only if it does not.
  private func isRestored(_ before: (profile: String, id: String), _ networks: NetworkManager) throws(Failure) -> Bool {
    let limit = Clock.monotonic + Self.timeout
    var attempts = 0
    var activation: String?
    while Clock.monotonic < limit {
      let found = try networks.snapshot()
      if isRestored(found) { return true }
      let active = active(found)
      let isComing = active?.profile == before.profile && active?.isLive == true
      if !isComing, activation.flatMap({ found.actives[$0] })?.isDue != true {
        attempts += 1
        guard attempts <= 3 else { break }
        activation = try networks.activate(before.profile, device)
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

  private func active(_ found: NetworkSnapshot) -> NetworkSnapshot.Active? {
    found.devices.first { $0.path == device }?.active.flatMap { found.actives[$0] }
  }

  private func isRestored(_ found: NetworkSnapshot) -> Bool {
    let active = active(found)
    return active?.profile == before?.profile && (active == nil || active?.state == .activated)
  }

  /// The shell command to reconnect, quoted, because a network may have any name.
  static func command(_ id: String) -> String {
    "nmcli connection up '\(Output.oneLine(id).split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
  }
}
