// What a link is to the daemon: something that is opened, comes up, carries bytes, and goes down with a reason. A new
// transport is one file here and one line in `open`. A link never reconnects by itself: Port decides that.

import Protocols

/// One attempt to reach a peer, from its opening to its end. `down` is told exactly once unless the owner closed it.
@Loop protocol Link: AnyObject {
  /// Sends these bytes in exactly one write; `linkSent` follows where there is an id. Only while up, only one at a time.
  func send(_ bytes: [UInt8], id: SendID?)
  /// Gives the link up, also while it is still connecting. Nothing is told afterwards.
  func close()
  /// Ends the connection with the peer and waits for another one; false where that takes a new link.
  func hangUp(_ reason: String) -> Bool
  /// What it waits for while it is connecting, in a person's words.
  var words: String? { get }
  /// What else there is to know of it, by short names; links without such have none.
  var details: [String: String] { get }
  /// What bytes are written to, where that is a descriptor. It is the link's: others may duplicate it and no more.
  var descriptor: CInt? { get }
  /// How fast a serial line runs, where that can be changed.
  var baud: Int? { get }
  /// Changes that, and throws away what came at the old speed. Only where it can be changed.
  func setBaud(_ new: Int)
}

extension Link {
  var descriptor: CInt? { nil }
  var baud: Int? { nil }
  func setBaud(_ new: Int) {}
  func hangUp(_ reason: String) -> Bool { false }
  var words: String? { nil }
  var details: [String: String] { [:] }
}

/// Where a link tells what happens to it.
@Loop protocol LinkOwner: AnyObject {
  /// Bytes can be sent from now on; `maximumSend` limits one write, where the link has such a limit.
  func linkCameUp(maximumSend: Int?)
  func linkReceived(_ bytes: [UInt8])
  func linkSent(_ id: SendID, failure: String?)
  /// What it waits for is something else now.
  func linkHasNews()
  /// The peer is gone, and the link waits for another one.
  func linkLostPeer(_ reason: String)
  /// A peer that is not of the network that is meant was refused (its address, and why); the link listens on.
  func linkRefused(_ whom: String)
  /// The link is dead. `final`: there is no sense in trying again (a recording has ended).
  func linkWentDown(_ reason: String, final: Bool)
}

extension LinkOwner {
  func linkLostPeer(_ reason: String) { linkWentDown(reason, final: false) }
  func linkRefused(_ whom: String) {}
}

/// What devices and their links stand on.
struct Equipment {
  let disk: Disk
  let blueZ: BlueZ
  let guardian: Guardian
  let http: HTTPClient
}

extension GATTRole {
  /// A peer of which nothing is known but what its URL says.
  static let unknown = GATTRole(profiles: [], names: [], isStream: false)
}

extension LinkURL {
  /// Begins to open the link. The owner is told of the outcome in a later turn.
  @Loop func open(for owner: any LinkOwner, as role: LinkRole, with equipment: Equipment) -> any Link {
    switch self {
    case .tcp(let host, let port): ChannelLink.tcp(host: host, port: port, givesUp: role.givesUp, owner: owner)
    case .serial(let path, let baud): ChannelLink.serial(path: path, baud: baud, owner: owner)
    case .replay(let path, let speed): ReplayLink(path: path, speed: speed, disk: equipment.disk, owner: owner)
    case .listening(let host, let port, let network):
      ListeningLink(host: host, port: port, network: network, disk: equipment.disk, owner: owner)
    case .ble(let target):
      BLELink(target, role: role.gatt ?? .unknown, blueZ: equipment.blueZ, owner: owner)
    }
  }
}
