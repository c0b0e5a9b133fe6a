// A link on which a device can be set up: found by a scan, at a known address, or given by the user. Formats it for the list of `setup`,
// and as a URL for the configuration. No I/O.

import Protocols
import Varlink

struct Candidate: Equatable {
  /// The scheme of its link: `ble`, `serial`, `tcp`, `slcan`, `can` or `replay`.
  var transport: String
  /// A Bluetooth address, the path of a port, HOST:PORT, the name of a CAN interface, or the link of a slcan adapter.
  var address: String
  /// The advertised name, or the port's name in /dev/serial/by-id.
  var name: String?
  /// Signal strength in dBm.
  var rssi: Int?
  /// The kind of device that it appears to be, if known.
  var kind: String?
  /// Whether another peripheral in range has the same name.
  var isNameShared = false
  /// The URL as the user gave it.
  var givenURL: String?

  static let serialNames = "/dev/serial/by-id"

  init(transport: String, address: String, name: String? = nil, rssi: Int? = nil, kind: String? = nil) {
    (self.transport, self.address, self.name, self.rssi) = (transport, address, name, rssi)
    switch transport {
    case "serial" where name.map(SetupKind.isCANAdapter) ?? false:
      (self.transport, self.address, self.kind) = ("slcan", "serial:\(portPath)", kind)
    case "serial": self.kind = kind ?? name.flatMap(SetupKind.kind(ofPort:))
    case "tcp": self.kind = kind ?? (address.hasSuffix(":2947") ? "position" : nil)  // the port of gpsd
    default: self.kind = kind
    }
  }

  init(_ found: Contract.Discovery) {
    self.init(transport: found.transport, address: found.address, name: found.name, rssi: found.rssi, kind: found.kind)
  }

  /// The candidate for a URL that the user gave. Only the scheme is checked; the daemon checks the rest.
  init(url: String) throws(Failure) {
    let scheme = String(url.prefix { $0 != ":" })
    let path = LinkText.body(of: url)
    guard ["ble", "serial", "tcp", "slcan", "can", "replay"].contains(scheme), let path, !path.isEmpty else {
      throw .usage("\"\(url)\" is not a link; write serial:/dev/ttyUSB0, tcp:192.168.0.10:35000 or ble:Veepeak")
    }
    let isPort = scheme == "serial" && path.hasPrefix(Self.serialNames + "/")
    let name = isPort ? String(path.dropFirst(Self.serialNames.count + 1)) : scheme == "ble" ? path : nil
    self.init(transport: scheme, address: path, name: name)
    givenURL = url
  }

  /// The link URL for a device of this kind with these options. The URL of a peripheral has the advertised name, if no other peripheral in
  /// range has the same name, so that the configuration stays valid if the peripheral is replaced. The URL of a port has the path in
  /// /dev/serial/by-id, if there is one.
  func link(kind: SetupKind, options: [String: String] = [:]) -> String {
    if let givenURL { return givenURL }
    switch transport {
    case "ble": return "ble:" + LinkText.encoded(name.flatMap { !isNameShared && LinkText.isExactName($0) ? $0 : nil } ?? address)
    case "serial": return "serial:\(portPath)" + (kind.baud(options).map { "?baud=\($0)" } ?? "")
    default: return "\(transport):\(address)"
    }
  }

  /// The path of the port. A path in /dev/serial/by-id does not depend on the order in which ports are plugged in.
  private var portPath: String { LinkText.encoded(name.map { "\(Self.serialNames)/\($0)" } ?? address) }

  /// The cells of its row in the list: kind, name, address, signal.
  var cells: [Cell] {
    let label: Cell =
      switch transport {
      case "ble": Cell(name ?? "-")
      case "serial": Cell(name ?? "serial port")
      case "slcan": Cell(name ?? "CAN adapter")
      case "can": Cell("CAN interface")
      default: Cell("network address")
      }
    return [Cell(kind ?? "unknown", kind == nil ? .dim : .good), label, Cell(address), Cell(rssi.map { "\($0) dBm" } ?? "")]
  }
}

extension [Candidate] {
  /// Adds a candidate, or updates the one with the same address.
  mutating func note(_ candidate: Candidate) {
    if let index = firstIndex(where: { $0.transport == candidate.transport && $0.address == candidate.address }) {
      self[index] = candidate
    } else {
      append(candidate)
    }
  }

  /// The candidates in the order of the list: recognised ones (gpsd last), then serial ports and CAN interfaces, then others, each sorted by
  /// signal strength.
  /// Omits peripherals that have neither a name nor a kind, and sets `isNameShared`.
  var arranged: [Candidate] {
    let names = Dictionary(filter { $0.transport == "ble" }.compactMap { $0.name.map { ($0, 1) } }, uniquingKeysWith: +)
    let shown = filter { $0.kind != nil || $0.transport != "ble" || !($0.name ?? "").isEmpty }.map { candidate in
      var candidate = candidate
      candidate.isNameShared = candidate.transport == "ble" && names[candidate.name ?? ""] ?? 0 > 1
      return candidate
    }
    let rank = { (candidate: Candidate) in
      candidate.kind == "position" ? 1 : candidate.kind != nil ? 0 : ["serial", "slcan", "can"].contains(candidate.transport) ? 2 : 3
    }
    return shown.enumerated().sorted { first, second in
      let (left, right) = (first.element, second.element)
      if rank(left) != rank(right) { return rank(left) < rank(right) }
      if left.rssi != right.rssi { return left.rssi ?? .max > right.rssi ?? .max }
      return first.offset < second.offset
    }.map(\.element)
  }
}
