// The networks in range that the toy can join, and why others are not offered. Names with characters that could corrupt the terminal are
// not shown. No I/O.

import Protocols

struct NearbyNetworks: Equatable {
  struct Network: Equatable {
    var name: String
    /// The signal strength in %.
    var strength: Int
    var isOpen: Bool
  }

  /// Strongest first.
  private(set) var offered: [Network] = []
  /// The counts of the other networks by reason, such as `2 not on 2.4 GHz`.
  private(set) var excluded: [String] = []

  init(_ points: [AccessPoint]) {
    var counts: [Reason: Int] = [:]
    let hidden = points.count(where: \.isHidden)
    if hidden > 0 { counts[.hidden] = hidden }
    for (ssid, accessPoints) in Dictionary(grouping: points.filter { !$0.isHidden }, by: \.ssid) {
      switch Self.assess(ssid, accessPoints) {
      case .success(let network): offered.append(network)
      case .failure(let reason): counts[reason, default: 0] += 1
      }
    }
    offered.sort { ($1.strength, $0.name) < ($0.strength, $1.name) }
    excluded = Reason.allCases.compactMap { reason in counts[reason].map { "\($0) \(reason.rawValue)" } }
  }

  private enum Reason: String, Error, CaseIterable {
    case band = "not on 2.4 GHz"
    case enterprise = "with an enterprise login"
    case security = "with WPA3, WEP or other unsupported security"
    case name = "with unsupported names"
    case toy = "that may be the toy itself"
    case hidden = "with hidden names"
  }

  /// Decides from the access points with one name whether the toy can join their network.
  private static func assess(_ ssid: [UInt8], _ accessPoints: [AccessPoint]) -> Result<Network, Reason> {
    let near = accessPoints.filter(\.isIn2GHzBand).sorted { $0.strength > $1.strength }
    guard let strongest = near.first else { return .failure(.band) }
    guard let best = near.first(where: { $0.security == .open || $0.security == .password }) else {
      return .failure(strongest.security == .enterprise ? .enterprise : .security)
    }
    guard let name = String(validating: ssid, as: UTF8.self), Output.oneLine(name) == name, ToyWiFi.validationError(forName: name) == nil
    else {
      return .failure(.name)
    }
    guard !ToyNetwork.looksLike(name, best.security) else { return .failure(.toy) }
    return .success(Network(name: name, strength: best.strength, isOpen: best.security == .open))
  }

  /// A table with a numbered row per network.
  func lines(paint: (String, Style) -> String) -> [String] {
    var table = Table(">", "network", ">signal", "security")
    for (position, network) in offered.enumerated() {
      table.rows.append([
        Cell("\(position + 1)"), Cell(network.name), Cell("\(network.strength) %"), Cell(network.isOpen ? "open" : "password"),
      ])
    }
    let rest = excluded.isEmpty ? [] : [paint("Not shown, because the toy cannot join them: \(excluded.joined(separator: ", "))", .dim)]
    return (offered.isEmpty ? ["No network in range that the toy can join"] : table.lines(paint: paint)) + rest
  }
}
