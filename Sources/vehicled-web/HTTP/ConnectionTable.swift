// The connections of all clients. When there are too many, the one that was opened first and carries no WebSocket is closed: a client that
// opens connections in a loop cannot keep the others out.

import NIOCore

final class ConnectionTable {
  /// The maximum number of connections, and of those that are WebSockets.
  private static let maxCount = 128
  private static let maxWebSockets = 64

  private struct Entry {
    let channel: any Channel
    var isWebSocket = false
  }

  /// In the order in which they were opened.
  private var entries: [Entry] = []

  func add(_ channel: any Channel) {
    entries.append(Entry(channel: channel))
    guard entries.count > Self.maxCount, let oldest = entries.first(where: { !$0.isWebSocket }) else { return }
    oldest.channel.close(promise: nil)
  }

  func remove(_ channel: any Channel) { entries.removeAll { $0.channel === channel } }

  var canUpgrade: Bool { entries.count { $0.isWebSocket } < Self.maxWebSockets }

  func upgraded(_ channel: any Channel) {
    guard let position = entries.firstIndex(where: { $0.channel === channel }) else { return }
    entries[position].isWebSocket = true
  }
}
