// The toy's own network, joined for a while: what was active before is restored, whatever ends it. Owns which device was borrowed
// and from what. It never depends on the order in which things happen: it looks at what is so now and does what is due.
// Must never remove or change a profile that is not its own.

import Glibc

struct BorrowedNetwork {
  /// Seconds.
  enum Patience {
    /// For the network to be there, while a person presses a button.
    static let search = 60.0
    static let activation = 45.0
    static let restoration = 25.0
    static let scan = 8.0
  }

  private enum Stage {
    /// Nothing was touched yet.
    case searching(next: Double)
    case joining(until: Double)
    case joined
  }

  private struct Loan {
    var device: String
    /// What was active there.
    var before: (profile: String, id: String)?
  }

  let ssid: String
  private let networks: NetworkManager
  private let uuid = BorrowedNetwork.randomUUID()
  private let searchEnd: Double
  private var stage = Stage.searching(next: 0)
  private var loan: Loan?
  private var looked = -Double.infinity
  /// Our own profile, once it was seen.
  private var profile: String?

  /// Looks whether there is a Wi-Fi device at all.
  init(_ ssid: String, _ networks: NetworkManager, at now: Double) throws(Failure) {
    self.ssid = ssid
    self.networks = networks
    searchEnd = now + Patience.search
    let found = try networks.look()
    if found.isSwitchedOff { throw .other("Wi-Fi is switched off; switch it on: nmcli radio wifi on") }
    if found.usable.isEmpty {
      throw .other("NetworkManager has no Wi-Fi device here; join \"\(ssid)\" with another one by hand, and leave out --join")
    }
  }

  var isJoined: Bool { if case .joined = stage { true } else { false } }

  /// Does what is due; gives what it waits for, in words.
  mutating func advance(at now: Double) throws(Failure) -> String? {
    guard now - looked >= 0.5 else { return waitsFor }
    looked = now
    switch stage {
    case .searching(let next):
      let found = try networks.look()
      if let (device, accessPoint) = found.find(ssid) {
        let active = device.active.flatMap { found.actives[$0] }
        loan = Loan(device: device.path, before: active.flatMap { $0.lives ? ($0.profile, $0.id) : nil })
        stage = .joining(until: now + Patience.activation)
        try networks.join(ssid, uuid: uuid, device.path, accessPoint)
      } else if now >= searchEnd {
        throw missing(found)
      } else if now >= next {
        stage = .searching(next: now + Patience.scan)
        for device in found.usable { networks.scan(device.path) }
      }
    case .joining(let limit):
      let found = try networks.look()
      let ours = found.actives.values.first { $0.uuid == uuid }
      profile = ours?.profile ?? profile
      let state = ours?.state
      let reason = found.devices.first { $0.path == loan?.device }?.reason ?? 0
      if state == .activated {
        stage = .joined
      } else if state != .activating, state != .unknown {
        guard reason == Self.notFound, now < searchEnd else { throw .other("\"\(ssid)\" could not be joined: \(Self.words(reason))") }
        stage = .searching(next: 0)  // it was heard a while ago and is gone: the button may be pressed yet
      } else if now >= limit {
        throw .other("\"\(ssid)\" could not be joined within \(Int(Patience.activation)) s; go nearer to the toy, and try again")
      }
    case .joined: break
    }
    return waitsFor
  }

  private var waitsFor: String? {
    switch stage {
    case .searching: "waiting for the network \"\(ssid)\": press the toy's Wi-Fi button until its light is white"
    case .joining: "joining \"\(ssid)\""
    case .joined: nil
    }
  }

  /// Gives the device back: what was active before is again, and our profile is gone. Says what came of it; nil where nothing was
  /// touched.
  mutating func restore() -> String? {
    guard let loan else { return nil }
    self.loan = nil
    do throws(Failure) {
      let found = try networks.look()
      let ours = found.actives.first { $0.value.uuid == uuid }
      profile = ours?.value.profile ?? profile
      if profile == nil, Self.isBack(loan, found) { return nil }  // we were refused
      let words: String
      if loan.before == nil {
        if let ours, ours.value.lives { try networks.deactivate(ours.key) }
        words = "left \"\(ssid)\""
      } else {
        words = try goBack(loan)
      }
      if let profile, try remains(profile) { try networks.delete(profile) }
      return words
    } catch {
      return "\"\(ssid)\" could not be left: \(error.message)\(loan.before.map { "; go back with: \(Self.command($0.id))" } ?? "")"
    }
  }

  private func goBack(_ loan: Loan) throws(Failure) -> String {
    guard let before = loan.before else { return "" }
    let limit = Clock.monotonic + Patience.restoration
    var asked = 0
    while Clock.monotonic < limit {
      let found = try networks.look()
      if Self.isBack(loan, found) { return "back in \"\(Output.oneLine(before.id))\"" }
      let active = Self.active(loan, found)
      // NetworkManager may go back by itself; only what does not happen is asked for.
      if active?.profile != before.profile || active?.lives != true {
        asked += 1
        guard asked <= 3 else { break }
        try networks.activate(before.profile, loan.device)
      }
      usleep(300_000)
    }
    return "\"\(Output.oneLine(before.id))\" does not come back by itself; go back with: \(Self.command(before.id))"
  }

  /// Whether a profile is still there a while after it was left; a volatile one goes by itself.
  private func remains(_ profile: String) throws(Failure) -> Bool {
    for _ in 0..<10 {
      guard try networks.look().profiles.contains(profile) else { return false }
      usleep(200_000)
    }
    return true
  }

  private static func active(_ loan: Loan, _ found: NetworkSnapshot) -> NetworkSnapshot.Active? {
    found.devices.first { $0.path == loan.device }?.active.flatMap { found.actives[$0] }
  }

  private static func isBack(_ loan: Loan, _ found: NetworkSnapshot) -> Bool {
    let active = active(loan, found)
    return active?.profile == loan.before?.profile && (active == nil || active?.state == .activated)
  }

  /// For a shell: the name may be what somebody nearby called a network.
  static func command(_ id: String) -> String {
    "nmcli connection up '\(Output.oneLine(id).split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
  }

  private func missing(_ found: NetworkSnapshot) -> Failure {
    let others = Set(found.accessPoints.values.filter { $0.security == .open }.compactMap { String(validating: $0.ssid, as: UTF8.self) })
      .filter { name in Self.factoryNames.contains { name.hasPrefix($0) } && Output.oneLine(name) == name }.sorted()
    let hint = others.first.map { "; \"\($0)\" is there and may be the toy: --join=\($0)" } ?? ""
    return .other(
      "no network \"\(ssid)\" was heard for \(Int(Patience.search)) s; press the toy's Wi-Fi button until its light is white\(hint)")
  }

  /// Names that the chip gives where the toy could not change them.
  private static let factoryNames = ["AI-THINKER_", "ESP_", "myESP"]
  /// NM_DEVICE_STATE_REASON_SSID_NOT_FOUND.
  private static let notFound = 53

  /// NMDeviceStateReason in words.
  private static func words(_ reason: Int) -> String {
    switch reason {
    case 5, 6, 15, 16, 17: "it gave no address; switch the toy off and on, and press its button again"
    case 7: "it wants a password, as the toy's network does not"
    case 8, 9, 10, 11: "the toy did not answer; go nearer to it, and try again"
    case 53: "it is gone; press the toy's Wi-Fi button again"
    default: "NetworkManager's reason is number \(reason); see: journalctl -u NetworkManager"
    }
  }

  private static func randomUUID() -> String {
    var bytes = (0..<16).map { _ in UInt8.random(in: 0...255) }
    bytes[6] = bytes[6] & 0x0f | 0x40
    bytes[8] = bytes[8] & 0x3f | 0x80
    let digits = bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    var text = ""
    for (position, digit) in digits.enumerated() { text += ([8, 12, 16, 20].contains(position) ? "-" : "") + String(digit) }
    return text
  }
}
