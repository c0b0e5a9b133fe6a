// A Wi-Fi device that was borrowed, what was active on it before, and the way back there. Must never remove or change a profile
// that is not its own, nor ask for anything that is so already.

import Glibc

struct NetworkRestoration {
  /// Seconds for all of the way back.
  private static let timeout = 25.0

  let device: String
  /// What was active there.
  let before: (profile: String, id: String)?
  /// Of our own profile.
  var uuid = ""
  /// Our own profile, once it was seen.
  var profile: String?

  init(_ device: NetworkSnapshot.Device, in found: NetworkSnapshot) {
    self.device = device.path
    let active = device.active.flatMap { found.actives[$0] }
    before = active.flatMap { $0.isLive ? ($0.profile, $0.id) : nil }
  }

  /// What became of our own profile.
  mutating func ours(in found: NetworkSnapshot) -> (path: String, active: NetworkSnapshot.Active)? {
    guard let ours = found.actives.first(where: { $0.value.uuid == uuid }) else { return nil }
    profile = ours.value.profile
    return (ours.key, ours.value)
  }

  /// Gives the device back: what was active before is again, and our profile is gone. Says what came of it; nil where nothing was
  /// touched.
  mutating func restore(_ ssid: String, _ networks: NetworkManager) -> String? {
    do throws(Failure) {
      let found = try networks.snapshot()
      _ = ours(in: found)
      if profile == nil, isBack(found) { return nil }  // we were refused
      var words = "left \"\(Output.oneLine(ssid))\""
      if let before { words = goBack(before, networks) }
      if let ours = ours(in: try networks.snapshot()), ours.active.isLive { try networks.deactivate(ours.path) }
      if let profile, try remains(profile, networks) { try networks.delete(profile) }
      return words
    } catch {
      let remedy = before.map { "; go back with: \(Self.command($0.id))" } ?? ""
      return "\"\(Output.oneLine(ssid))\" could not be left: \(error.message)\(remedy)"
    }
  }

  private func goBack(_ before: (profile: String, id: String), _ networks: NetworkManager) -> String {
    var reason = "it does not come by itself"
    do throws(Failure) {
      if try isBack(before, networks) { return "back in \"\(Output.oneLine(before.id))\"" }
    } catch { reason = error.message }
    return "not back in \"\(Output.oneLine(before.id))\": \(reason); go back with: \(Self.command(before.id))"
  }

  /// Whether what was there before comes back in time. NetworkManager may go back by itself; only what does not happen is asked for.
  private func isBack(_ before: (profile: String, id: String), _ networks: NetworkManager) throws(Failure) -> Bool {
    let limit = Clock.monotonic + Self.timeout
    var asked = 0
    var way: String?
    while Clock.monotonic < limit {
      let found = try networks.snapshot()
      if isBack(found) { return true }
      let active = active(found)
      let comes = active?.profile == before.profile && active?.isLive == true
      if !comes, way.flatMap({ found.actives[$0] })?.isDue != true {
        asked += 1
        guard asked <= 3 else { break }
        way = try networks.activate(before.profile, device)
      }
      usleep(300_000)
    }
    return false
  }

  /// Whether a profile is still there a while after it was left; a volatile one goes by itself.
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

  private func isBack(_ found: NetworkSnapshot) -> Bool {
    let active = active(found)
    return active?.profile == before?.profile && (active == nil || active?.state == .activated)
  }

  /// For a shell: the name may be what somebody nearby called a network.
  static func command(_ id: String) -> String {
    "nmcli connection up '\(Output.oneLine(id).split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
  }
}
