// The toy's own network, joined for a while; what was active before is restored, whatever ends it, and should vehiclectl be killed
// NetworkManager itself ends it, because the activation is bound to our connection to the bus. It never depends on the order in
// which things happen: it looks at what is so now and does what is due.

struct TemporaryNetwork {
  /// Seconds for the network to be there, while a person presses a button.
  private static let search = 60.0
  /// Seconds to join it: longer than NetworkManager tries, which knows why it could not.
  private static let activation = 60.0
  private static let (betweenScans, betweenLooks) = (8.0, 0.5)
  /// Seconds for a device that nobody uses to hear what another one hears: a search and a half.
  private static let chance = 12.0

  private enum Stage {
    /// Nothing was touched yet.
    case searching(scan: Double)
    case joining(until: Double)
    case joined
  }

  let ssid: String
  private let networks: NetworkManager
  private var stage = Stage.searching(scan: 0)
  /// When it is given up; counted from the first look.
  private var searchEnd: Double?
  private var loan: NetworkRestoration?
  private var looked = -Double.infinity
  /// When a device that is in use heard it, and another one that could do had not.
  private var firstHeard: Double?

  /// Looks whether there is a Wi-Fi device at all.
  init(_ ssid: String, _ networks: NetworkManager) throws(Failure) {
    self.ssid = ssid
    self.networks = networks
    let found = try networks.snapshot()
    if found.isSwitchedOff { throw .other("Wi-Fi is switched off; switch it on: nmcli radio wifi on") }
    if found.usable.isEmpty {
      throw .other("NetworkManager has no Wi-Fi device here; join \"\(ssid)\" with another one by hand, and leave out --join")
    }
  }

  var isJoined: Bool { if case .joined = stage { true } else { false } }
  /// There is something to give back.
  var needsRestore: Bool { loan != nil }

  /// Does what is due; gives what it waits for, in words.
  mutating func advance(at now: Double) throws(Failure) -> String? {
    guard now - looked >= Self.betweenLooks else { return waitsFor }
    looked = now
    let searchEnd = searchEnd ?? now + Self.search
    self.searchEnd = searchEnd
    switch stage {
    case .searching(let scan):
      let found = try networks.snapshot()
      if let (device, accessPoint) = found.find(ssid, on: loan?.device), mayTake(device, in: found, at: now) {
        var begun = loan ?? NetworkRestoration(device, in: found)  // what was there before the first attempt counts
        begun.uuid = Self.randomUUID()
        loan = begun
        stage = .joining(until: now + Self.activation)
        networks.clearFailures()
        try networks.join(ssid, uuid: begun.uuid, device.path, accessPoint)
      } else if now >= searchEnd {
        throw missing(found)
      } else if now >= scan {
        stage = .searching(scan: now + Self.betweenScans)
        // Unheard, it would never be: nothing makes NetworkManager search while it is in another network.
        for device in found.usable where !networks.scan(device.path) { throw .noAccessToNetworks }
      }
    case .joining(let limit):
      let state = loan?.ours(in: try networks.snapshot())?.active.state
      if state == .activated {
        stage = .joined
      } else if state != .activating, state != .unknown {
        let reason = loan.flatMap { networks.failure(of: $0.device) }
        guard reason == Self.notFound, now < searchEnd else { throw .other("\"\(ssid)\" could not be joined: \(Self.words(reason))") }
        stage = .searching(scan: now)  // it was heard a while ago and is gone: the button may be pressed yet
      } else if now >= limit {
        throw .other("\"\(ssid)\" could not be joined within \(Int(Self.activation)) s; go nearer to the toy, and try again")
      }
    case .joined: break
    }
    return waitsFor
  }

  /// Whether a device is taken now: one that is in use is, when those that nobody uses have had their chance to hear the toy too.
  private mutating func mayTake(_ device: NetworkSnapshot.Device, in found: NetworkSnapshot, at now: Double) -> Bool {
    guard loan == nil, !device.isIdle, found.usable.contains(where: \.isIdle) else { return true }
    let firstHeard = firstHeard ?? now
    self.firstHeard = firstHeard
    return now >= min(firstHeard + Self.chance, searchEnd ?? .infinity)
  }

  private var waitsFor: String? {
    switch stage {
    case .searching: "waiting for the network \"\(ssid)\": press the toy's Wi-Fi button until its light is white"
    case .joining: "joining \"\(ssid)\""
    case .joined: nil
    }
  }

  /// Gives back what was borrowed. Says what came of it; nil where nothing was touched.
  mutating func restore() -> String? {
    defer { loan = nil }
    return loan?.restore(ssid, networks)
  }

  private func missing(_ found: NetworkSnapshot) -> Failure {
    let others = found.accessPoints.values.compactMap { point in
      String(validating: point.ssid, as: UTF8.self).flatMap {
        ToyNetwork.looksLike($0, point.security) && Output.oneLine($0) == $0 ? $0 : nil
      }
    }
    let hint = others.min().map { "; \"\($0)\" is there and may be the toy: --join=\($0)" } ?? ""
    return .other(
      "no network \"\(ssid)\" was heard for \(Int(Self.search)) s; press the toy's Wi-Fi button until its light is white\(hint)")
  }

  /// NM_DEVICE_STATE_REASON_SSID_NOT_FOUND.
  private static let notFound = 53

  /// NMDeviceStateReason in words.
  private static func words(_ reason: Int?) -> String {
    switch reason {
    case 5, 6, 15, 16, 17: "it gave no address; switch the toy off and on, and press its button again"
    case 7: "it wants a password, as the toy's network does not"
    case 8, 9, 10, 11: "the toy did not answer; go nearer to it, and try again"
    case 53: "it is gone; press the toy's Wi-Fi button again"
    case let number?: "NetworkManager's reason is number \(number); see: journalctl -u NetworkManager"
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
