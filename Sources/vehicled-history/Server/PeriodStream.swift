// Sends a long list of periods in parts. The next part is read while one is sent; a client that reads slowly delays the parts after that.

import HistoryStore
import Protocols
import SQLite
import ServiceRuntime
import Varlink

/// Sends the periods with some IDs to a client. A client that accepts only one reply gets all of them, or an error.
final class PeriodStream {
  private let call: MethodCall<HistoryContract.PeriodsMethod>
  private let reads: ReaderThread
  private let openPeriods: () -> [HistoryContract.PeriodMethod.Result]
  /// The IDs that were not read yet.
  private var rest: ArraySlice<Int>
  private var isReading = false
  /// The part that was read last, until it is sent.
  private var part: [UInt8]?

  init(
    _ call: MethodCall<HistoryContract.PeriodsMethod>, _ ids: [Int], _ reads: ReaderThread,
    openPeriods: @escaping () -> [HistoryContract.PeriodMethod.Result]
  ) {
    (self.call, self.reads, self.openPeriods, rest) = (call, reads, openPeriods, ids[...])
  }

  func start() {
    // The call keeps the stream while it has not ended.
    if call.acceptsMore { call.onRoom { self.send() } }
    read()
  }

  private func read() {
    isReading = true
    reads.run { [rest, open = openPeriods(), isStream = call.acceptsMore] reader in
      let axis = try TimeAxis(reader)
      var list = PeriodList(axis, size: isStream ? PeriodList.partSize : 0)
      let count = try reader.readPeriods(rest) { (row) throws(StoreError) in
        if row.isOpen { list.append(HistoryServer.details(try row.period(), axis, open).period) } else { try list.append(row) }
        return list.size < (isStream ? PeriodList.partSize : PeriodList.maxSize)
      }
      let remaining = rest.dropFirst(count)
      guard isStream || remaining.isEmpty else {
        throw HistoryContractError.invalidArgument(
          argument: "limit", message: "\(rest.count) periods exceed the size of a reply; set a limit, or call with \"more\"")
      }
      return (remaining, list.message(continues: !remaining.isEmpty))
    } then: { (result: Result<(ArraySlice<Int>, [UInt8]), any Error>) in
      self.isReading = false
      guard !self.call.hasEnded else { return }
      switch result {
      case .success((let remaining, let message)):
        (self.rest, self.part) = (remaining, message)
        self.send()
      case .failure(let error): HistoryServer.fail(self.call, error)
      }
    }
  }

  private func send() {
    guard let message = part, !call.hasEnded, !isReading else { return }
    if rest.isEmpty { return call.reply(encoded: message) }
    guard call.hasRoom else { return }
    part = nil
    read()
    call.send(encoded: message)
  }
}
