// The interface of links: a link is opened, comes up, transfers bytes, and goes down with a reason. To add a transport, add a file
// here and a case in `open`. A link does not reconnect; LinkSupervisor does.

import Protocols

/// One connection to a peer, from the attempt to open it to its end. `linkWentDown` is called exactly once unless the owner closes it.
@Loop protocol Link: AnyObject {
  /// Sends bytes in exactly one write; `linkSent` follows if `id` is set. Requires that the link is up.
  func send(_ bytes: [UInt8], id: SendID?)
  /// Closes the link, even while it is connecting. No calls to the owner follow.
  func close()
  /// Disconnects the peer and waits for another one. Returns false without effect if that requires closing the link itself.
  func disconnectPeer(_ reason: String) -> Bool
  /// A message for the user: what the link is waiting for while it is connecting.
  var waitReason: String? { get }
  /// Additional details for the user. The keys are short names.
  var details: [String: String] { get }
  /// A problem of a link that is up, with its remedy, or nil.
  var problem: String? { get }
  /// Receives only frames that match one of the filters. Only CAN interfaces of the kernel can do this; other links ignore it.
  func setFilter(_ filters: [CANFilter])
  /// The file descriptor for writes, if there is one. The link owns it; other code may only duplicate it.
  var descriptor: CInt? { get }
  /// The baud rate of a serial line; nil if it cannot be changed.
  var baud: Int? { get }
  /// Changes the baud rate and discards buffered input, which was received at the old rate. Does nothing if `baud` is nil.
  func setBaud(_ new: Int)
}

extension Link {
  var descriptor: CInt? { nil }
  var baud: Int? { nil }
  func setBaud(_ new: Int) {}
  func disconnectPeer(_ reason: String) -> Bool { false }
  var waitReason: String? { nil }
  var details: [String: String] { [:] }
  var problem: String? { nil }
  func setFilter(_ filters: [CANFilter]) {}
}

/// The receiver of a link's events.
@Loop protocol LinkOwner: AnyObject {
  /// The link is up. `maximumSend` is the maximum number of bytes in one write; nil if there is no limit.
  func linkCameUp(maximumSend: Int?)
  func linkReceived(_ bytes: [UInt8])
  /// Bytes with the monotonic time at which the kernel received them.
  func linkReceived(_ bytes: [UInt8], at time: Instant)
  func linkSent(_ id: SendID, failure: String?)
  /// `waitReason`, `details` or `problem` has changed.
  func linkDetailsChanged()
  /// The peer has disconnected, and the link waits for another one.
  func linkLostPeer(_ reason: String)
  /// A peer outside the permitted network was rejected. `description` is its address and the reason, for the user. The link still listens.
  func linkRejectedPeer(_ description: String)
  /// The link is down. If `final` is true, the owner does not open it again (for example because a recording has ended).
  func linkWentDown(_ reason: String, final: Bool)
}

extension LinkOwner {
  func linkReceived(_ bytes: [UInt8], at time: Instant) { linkReceived(bytes) }
  func linkLostPeer(_ reason: String) { linkWentDown(reason, final: false) }
  func linkRejectedPeer(_ description: String) {}
}

extension PeripheralDescription {
  /// The description of a peer about which only the URL is known.
  static let unknown = PeripheralDescription(profiles: [], names: [], isStream: false)
}

/// Opens the links of devices.
struct LinkOpener {
  let disk: Disk
  let blueZ: BlueZ

  /// Starts opening a link. The result is reported to the owner in a later turn of the loop.
  @Loop func open(_ url: LinkURL, for owner: any LinkOwner, as role: LinkRole) -> any Link {
    switch url {
    case .tcp(let host, let port):
      ChannelLink.tcp(host: host, port: port, disconnectsUnresponsivePeer: role.disconnectsUnresponsivePeer, owner: owner)
    case .serial(let path, let baud): ChannelLink.serial(path: path, baud: baud, owner: owner)
    case .can(let interface): CANLink(interface: interface, owner: owner)
    case .slcan(let carrier): open(carrier, for: owner, as: role)
    case .replay(let path, let speed):
      ReplayLink(path: path, speed: speed, disk: disk, onlyReceives: role.onlyReceives, owner: owner)
    case .listening(let host, let port, let network):
      ListeningLink(host: host, port: port, network: network, disk: disk, owner: owner)
    case .ble(let target):
      BLELink(target, description: role.gatt ?? .unknown, blueZ: blueZ, owner: owner)
    }
  }

  /// Until `stopWatching`, calls `changed` in a later turn whenever the link may have become reachable.
  @Loop func watch(_ url: LinkURL, as role: LinkRole, for client: AnyObject, _ changed: @escaping @Loop () -> Void) {
    switch url {
    case .serial(let path, _): PathWatcher.shared.watch(path, for: client, changed)
    case .tcp, .can, .listening: NetworkWatcher.shared.watch(for: client, changed)
    case .slcan(let carrier): watch(carrier, as: role, for: client, changed)
    case .ble(let target):
      blueZ.monitor.begin(for: client, on: BlueZ.path(ofAdapter: target.adapter)) { [blueZ] path in
        guard let peer = blueZ.peripheral(path) else { return }
        if target.matches(address: peer.address, name: peer.name, description: role.gatt ?? .unknown) { changed() }
      }
    case .replay: break
    }
  }

  @Loop func stopWatching(for client: AnyObject) {
    PathWatcher.shared.stop(for: client)
    NetworkWatcher.shared.stop(for: client)
    blueZ.monitor.end(for: client)
  }
}
