// What a link is to the daemon: something that is opened, comes up, carries bytes, and goes down with a reason. A new
// transport is one file here and one line in `open`. A link never reconnects by itself: Port decides that.

import Protocols

/// One attempt to reach a peer, from its opening to its end. `down` is told exactly once unless the owner closed it.
@Loop protocol Link: AnyObject {
  /// Sends these bytes in exactly one write; `linkSent` follows where there is an id. Only while up, only one at a time.
  func send(_ bytes: [UInt8], id: SendID?)
  /// Gives the link up, also while it is still connecting. Nothing is told afterwards.
  func close()
}

/// Where a link tells what happens to it.
@Loop protocol LinkOwner: AnyObject {
  /// Bytes can be sent from now on; `maximumSend` limits one write, where the link has such a limit.
  func linkCameUp(maximumSend: Int?)
  func linkReceived(_ bytes: [UInt8])
  func linkSent(_ id: SendID, failure: String?)
  /// The link is dead. `final`: there is no sense in trying again (a recording has ended).
  func linkWentDown(_ reason: String, final: Bool)
}

extension LinkURL {
  /// Begins to open the link. The owner is told of the outcome in a later turn.
  @Loop func open(for owner: any LinkOwner, disk: Disk) -> any Link {
    switch self {
    case .tcp(let host, let port): ChannelLink.tcp(host: host, port: port, owner: owner)
    case .serial(let path, let baud): ChannelLink.serial(path: path, baud: baud, owner: owner)
    case .replay(let path, let speed): ReplayLink(path: path, speed: speed, disk: disk, owner: owner)
    }
  }
}
