// A reply of Periods. Ten years have thousands of trips, so their stored texts are sent as they are. No I/O.

import HistoryStore
import Protocols
import SQLite
import Varlink

struct PeriodList {
  /// The size in bytes from which a client that accepts several replies gets the rest in further ones.
  static let partSize = 512 << 10
  /// The size that a single reply must not reach. No period needs more than the difference to the limit of a reply.
  static let maxSize = VarlinkFraming.replyLimit - 1 << 20

  private let axis: TimeAxis
  private var bytes: [UInt8]
  private var isEmpty = true
  /// The last device and its name as JSON.
  private var device = (name: "", json: "")

  /// Creates an empty list. `size` is the expected size in bytes.
  init(_ axis: TimeAxis, size: Int = 0) {
    self.axis = axis
    bytes = []
    bytes.reserveCapacity(size + 1 << 12)
    bytes += VarlinkReply.Envelope.head + Array("{\"periods\":[".utf8)
  }

  mutating func append(_ period: HistoryContract.Period) {
    separate()
    bytes.append(contentsOf: period.json.utf8)
  }

  mutating func append(_ row: PeriodRow) throws(StoreError) {
    // A clock that was corrected since changes the times. Within a boot, it changes all of them.
    guard axis.wall(row.start) == row.summaryStart, row.start.boot == row.end.boot, !row.isFrozen else {
      return append(PeriodMapping.summary(try row.period(), axis))
    }
    separate()
    bytes.append(contentsOf: "{\"number\":".utf8)
    bytes.append(contentsOf: String(row.id).utf8)
    bytes.append(contentsOf: ",\"device\":".utf8)
    bytes.append(contentsOf: name(row.device).utf8)
    bytes.append(UInt8(ascii: ","))
    row.appendSummaryMembers(to: &bytes)
  }

  /// The size in bytes.
  var size: Int { bytes.count }

  /// Returns the reply. `continues` is whether others follow.
  consuming func message(continues: Bool) -> [UInt8] {
    bytes.append(contentsOf: "]}".utf8)
    bytes.append(contentsOf: VarlinkReply.Envelope.tail(continues: continues))
    return bytes
  }

  private mutating func separate() {
    if !isEmpty { bytes.append(UInt8(ascii: ",")) }
    isEmpty = false
  }

  private mutating func name(_ name: String) -> String {
    if device.name != name { device = (name, JSON.string(name).text) }
    return device.json
  }
}
