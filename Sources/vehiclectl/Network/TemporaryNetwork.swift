// Joins the toy's own network temporarily and restores the previous connection afterwards. The activation is bound to our bus connection,
// so NetworkManager ends it if vehiclectl is killed. Each step depends on the current state, not on the order of events.

struct TemporaryNetwork {
  /// The time in seconds to find the network, during which the user presses the toy's button.
  private static let searchTimeout = 60.0
  /// The time in seconds to join it; longer than NetworkManager's own timeout, after which it reports a reason.
  private static let activationTimeout = 60.0
  /// Intervals in seconds.
  private static let (scanInterval, checkInterval) = (8.0, 0.5)
  /// The time in seconds for an idle device to find the network after a device in use has found it: one and a half scans.
  private static let idleDeviceTimeout = 12.0

  private enum Stage {
    /// No connection has been changed yet.
    case searching(nextScan: Double)
    case joining(until: Double)
    case joined
  }

  let ssid: String
  private let networks: NetworkManager
  private var stage = Stage.searching(nextScan: 0)
  /// When the search ends.
  private var searchEnd: Double?
  private var restoration: NetworkRestoration?
  private var lastCheck = -Double.infinity
  /// When a device in use first found the network, while idle ones had not.
  private var firstFound: Double?

  /// Fails if there is no usable Wi-Fi device.
  init(_ ssid: String, _ networks: NetworkManager) throws(Failure) {
    self.ssid = ssid
    self.networks = networks
    let snapshot = try networks.snapshot()
    if snapshot.isSwitchedOff { throw .other("cannot join \"\(ssid)\": Wi-Fi is switched off; switch it on: nmcli radio wifi on") }
    if snapshot.usable.isEmpty {
      throw .other("cannot join \"\(ssid)\": NetworkManager has no Wi-Fi device; join it by hand and omit --join")
    }
  }

  var isJoined: Bool { if case .joined = stage { true } else { false } }
  /// Whether there is a previous connection to restore.
  var needsRestore: Bool { restoration != nil }

  /// Performs the next step. Returns a message that names what it is waiting for; nil once joined.
  mutating func advance(at now: Double) throws(Failure) -> String? {
    guard now - lastCheck >= Self.checkInterval else { return waitReason }
    lastCheck = now
    let searchEnd = searchEnd ?? now + Self.searchTimeout
    self.searchEnd = searchEnd
    switch stage {
    case .searching(let scan):
      let snapshot = try networks.snapshot()
      if let (device, accessPoint) = snapshot.find(ssid, on: restoration?.device), shouldUse(device, in: snapshot, at: now) {
        var started = restoration ?? NetworkRestoration(device, in: snapshot)  // keep the connection from before the first attempt
        started.uuid = Self.randomUUID()
        restoration = started
        stage = .joining(until: now + Self.activationTimeout)
        networks.clearFailures()
        try networks.join(ssid, uuid: started.uuid, device.path, accessPoint)
      } else if now >= searchEnd {
        throw notFoundFailure(snapshot)
      } else if now >= scan {
        stage = .searching(nextScan: now + Self.scanInterval)
        // NetworkManager rarely scans by itself while it is connected to another network.
        for device in snapshot.usable where !networks.scan(device.path) { throw .noAccessToNetworks }
      }
    case .joining(let deadline):
      let state = restoration?.findOwnConnection(in: try networks.snapshot())?.active.state
      if state == .activated {
        stage = .joined
      } else if state != .activating, state != .unknown {
        let reason = restoration.flatMap { networks.failure(of: $0.device) }
        guard reason == Self.ssidNotFound, now < searchEnd else { throw .other("cannot join \"\(ssid)\": \(Self.explanation(reason))") }
        stage = .searching(nextScan: now)  // a stale scan result: search again until the user presses the button
      } else if now >= deadline {
        throw .other("cannot join \"\(ssid)\": timeout after \(Int(Self.activationTimeout)) s; move closer to the toy and try again")
      }
    case .joined: break
    }
    return waitReason
  }

  /// Whether to use this device now. A device with a connection is used only after idle ones had time to find the toy.
  private mutating func shouldUse(_ device: NetworkSnapshot.Device, in snapshot: NetworkSnapshot, at now: Double) -> Bool {
    guard restoration == nil, !device.isIdle, snapshot.usable.contains(where: \.isIdle) else { return true }
    let firstFound = firstFound ?? now
    self.firstFound = firstFound
    return now >= min(firstFound + Self.idleDeviceTimeout, searchEnd ?? .infinity)
  }

  private var waitReason: String? {
    switch stage {
    case .searching: "waiting for the network \"\(ssid)\": press the toy's Wi-Fi button until its light is white"
    case .joining: "joining \"\(ssid)\""
    case .joined: nil
    }
  }

  /// Restores the previous connection. Returns a message about the result; nil if nothing was changed.
  mutating func restore() -> String? {
    defer { restoration = nil }
    return restoration?.restore(ssid, networks)
  }

  /// The failure if the network was not found. Suggests another network that may be the toy's.
  private func notFoundFailure(_ snapshot: NetworkSnapshot) -> Failure {
    let others = snapshot.accessPoints.values.compactMap { point in
      String(validating: point.ssid, as: UTF8.self).flatMap {
        ToyNetwork.looksLike($0, point.security) && Output.oneLine($0) == $0 ? $0 : nil
      }
    }
    let hint = others.min().map { "; \"\($0)\" may be the toy: --join=\($0)" } ?? ""
    return .other(
      "network \"\(ssid)\" not found within \(Int(Self.searchTimeout)) s; press the toy's Wi-Fi button until its light is white\(hint)")
  }

  /// NM_DEVICE_STATE_REASON_SSID_NOT_FOUND.
  private static let ssidNotFound = 53

  /// The explanation of an NMDeviceStateReason, and what to do.
  private static func explanation(_ reason: Int?) -> String {
    switch reason {
    case 5, 6, 15, 16, 17: "no IP address from the toy; switch the toy off and on, and press its button again"
    case 7: "it requires a password, so it is not the toy's network"
    case 8, 9, 10, 11: "the toy did not respond; move closer to it and try again"
    case ssidNotFound: "out of range or switched off; press the toy's Wi-Fi button again"
    case let number?: "NetworkManager reports reason \(number); see: journalctl -u NetworkManager"
    case nil: "NetworkManager gave no reason; see: journalctl -u NetworkManager"
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
